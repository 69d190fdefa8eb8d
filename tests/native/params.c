// SPDX-License-Identifier: GPL-2.0
/* The module's parameters: the values that it accepts, refuses and shows. */
#include "shim/internal.h"

#include "faults.h"

/*
 * The value that is set, and the value that is shown afterwards. NULL means
 * that the driver refuses the value and still shows the old value.
 */
static const struct {
	const char *name, *value, *shown;
} cases[] = {
	{ "strategy", "best_fit", "best_fit\n" },
	{ "strategy", "worst_fit" },
	{ "strategy", "" },
	{ "strategy", "first_fit\n", "first_fit\n" },
	{ "order", "fill_first", "fill_first\n" },
	{ "order", "1" },
	{ "order", "auto", "auto\n" },
	{ "order", "load_balance", "load_balance\n" },
	{ "acquire", "prealloc", "prealloc\n" },
	{ "acquire", "eager" },
	{ "acquire", "lazy", "lazy\n" },
	{ "fallback_sizes", "4K", "4K\n" },
	{ "fallback_sizes", "4P,1T,3G,5M,1028K", "4P,1T,3G,5M,1028K\n" },
	{ "fallback_sizes", "4096,2g\n", "4K,2G\n" },
	{ "fallback_sizes", "8M,7M,6M,5M,4M,3M,2M,1M",
	  "8M,7M,6M,5M,4M,3M,2M,1M\n" },
	{ "fallback_sizes", "9M,8M,7M,6M,5M,4M,3M,2M,1M" },
	{ "fallback_sizes", "auto", "auto\n" },
	{ "fallback_sizes", "auto,4K" },
	{ "fallback_sizes", "" },
	{ "fallback_sizes", "0" },
	{ "fallback_sizes", "5P" },
	{ "fallback_sizes", "4097" },
	{ "fallback_sizes", "12G,,4G" },
	{ "fallback_sizes", "12G," },
	{ "fallback_sizes", "-4K" },
	{ "fallback_sizes", "4X" },
	{ "fallback_sizes", "4Kx" },
	{ "fallback_sizes", "16777217T" },
	{ "fallback_sizes", "18446744073709555712" },
	{ "fallback_sizes", "18446744073709551616" },
	{ "max_regions", "1", "1\n" },
	{ "max_regions", "0" },
	{ "max_regions", "-1" },
	{ "max_regions", "64", "64\n" },
	{ "max_regions", "65" },
	{ "max_regions", "12x" },
	{ "program_slots", "63", "63\n" },
	{ "program_slots", "64" },
	{ "default_depth", "1", "1\n" },
	{ "default_depth", "0" },
	{ "default_depth", "32", "32\n" },
	{ "default_depth", "33" },
	{ "release_after_s", "86400", "86400\n" },
	{ "release_after_s", "86401" },
	{ "release_after_s", "0", "0\n" },
	{ "pf_open", "mode", "mode\n" },
	{ "pf_open", "all" },
	{ "pf_open", "admin", "admin\n" },
};

static unsigned int check_case(unsigned int i)
{
	static char shown[PAGE_SIZE];
	const char *expected = cases[i].shown;
	int rc = native_param_set(cases[i].name, cases[i].value);
	unsigned int last = i;

	while (!expected && !strcmp(cases[last].name, cases[i].name)) {
		expected = cases[last].shown;
		last--;
	}
	native_param_get(cases[i].name, shown);
	if (rc == (cases[i].shown ? 0 : -EINVAL) && !strcmp(shown, expected))
		return 0;
	printf("# %s=%s: %d, shown is %s\n", cases[i].name, cases[i].value, rc,
	       shown);
	return 1;
}

/*
 * Loads the module with two parameters, whose values may contradict each other.
 */
static unsigned int check_load(const char *a, const char *a_value,
			       const char *b, const char *b_value, int expected)
{
	int rc;

	native_param_set(a, a_value);
	native_param_set(b, b_value);
	rc = native_module_init();
	if (!rc)
		native_module_exit();
	if (rc == expected)
		return 0;
	printf("# %s=%s %s=%s: %d\n", a, a_value, b, b_value, rc);
	return 1;
}

/**
 * params_wrong - try the values of all parameters
 *
 * Return: number of wrong outcomes.
 */
unsigned int params_wrong(void)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		wrong += check_case(i);
	current->fail_at = 1;
	wrong += native_param_set("fallback_sizes", "4K") != -ENOMEM;
	current->fail_at = 0;
	wrong += check_load("max_regions", "4", "program_slots", "3", 0);
	wrong += check_load("max_regions", "4", "program_slots", "4", -EINVAL);
	native_param_set("program_slots", "0");
	wrong += check_load("release_after_s", "1", "acquire", "lazy", 0);
	wrong += check_load("release_after_s", "1", "acquire", "prealloc",
			    -EINVAL);
	wrong += check_load("release_after_s", "0", "acquire", "prealloc", 0);
	native_param_set("acquire", "lazy");
	return wrong;
}
