// SPDX-License-Identifier: GPL-2.0
/* The list of functions: order, ids, FLEXMEM_VISIBLE_DEVICES. */
#include "test.h"

#include <stdarg.h>

static void link_to(const char *target, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Makes a link in the fake sysfs. */
static void link_to(const char *target, const char *format, ...)
{
	va_list arguments;
	unsigned int i;

	for (i = 0; i < FAKE_LINKS && fake.links[i].path[0]; i++)
		;
	assert_true(i < FAKE_LINKS);
	va_start(arguments, format);
	vsnprintf(fake.links[i].path, sizeof(fake.links[i].path), format,
		  arguments);
	va_end(arguments);
	snprintf(fake.links[i].target, sizeof(fake.links[i].target), "%s",
		 target);
}

static void on_bus(unsigned int number, const char *bus, const char *address)
{
	char target[64];

	snprintf(target, sizeof(target), "../../%s", address);
	link_to(target, "/sys/dev/char/511:%u/device", number);
	snprintf(target, sizeof(target), "../../bus/%s", bus);
	link_to(target, "/sys/dev/char/511:%u/device/subsystem", number);
	link_to("../../drivers/npu", "/sys/dev/char/511:%u/device/driver",
		number);
}

/* A PF at 0000:03:00.0 with VFs .1 and .2. Numbers of nodes are in disorder. */
static void pci_card(void)
{
	unsigned int vf;

	fake_node(0, 0, FLEXMEM_MODE_PF);
	fake_node(1, 5, FLEXMEM_MODE_VF);
	fake_node(2, 2, FLEXMEM_MODE_VF);
	on_bus(0, "pci", "0000:03:00.0");
	on_bus(5, "pci", "0000:03:00.1");
	on_bus(2, "pci", "0000:03:00.2");
	for (vf = 2; vf <= 5; vf += 3) {
		link_to("../0000:03:00.0", "/sys/dev/char/511:%u/device/physfn",
			vf);
		link_to("../0000:03:00.1",
			"/sys/dev/char/511:%u/device/physfn/virtfn0", vf);
		link_to("../0000:03:00.2",
			"/sys/dev/char/511:%u/device/physfn/virtfn1", vf);
	}
}

static void expect_function(unsigned int index, const char *path,
			    const char *id)
{
	struct flexmem_identity identity;

	assert_int_equal(flexmem_device_identity(index, &identity,
						 sizeof(identity)), 0);
	assert_string_equal(identity.path, path);
	assert_string_equal(identity.id, id);
}

static void expect_count(unsigned int expected)
{
	struct flexmem_identity identity;
	unsigned int count = ~0U;

	assert_int_equal(flexmem_device_count(&count), 0);
	assert_int_equal(count, expected);
	assert_int_equal(flexmem_device_identity(count, &identity,
						 sizeof(identity)), -ENODEV);
}

static void vfs_have_the_number_that_their_pf_gives(void **state)
{
	struct flexmem_identity identity;

	(void)state;
	pci_card();
	expect_count(3);
	expect_function(0, "/dev/flexmem5", "pci-0000:03:00.0-vf0");
	expect_function(1, "/dev/flexmem2", "pci-0000:03:00.0-vf1");
	expect_function(2, "/dev/flexmem0", "pci-0000:03:00.0");
	assert_int_equal(flexmem_device_identity(1, &identity,
						 sizeof(identity)), 0);
	assert_string_equal(identity.bus, "pci");
	assert_string_equal(identity.address, "0000:03:00.2");
	assert_string_equal(identity.parent, "0000:03:00.0");
	assert_string_equal(identity.driver, "npu");
	assert_int_equal(identity.function, FLEXMEM_VF);
	assert_int_equal(flexmem_device_identity(2, &identity,
						 sizeof(identity)), 0);
	assert_string_equal(identity.parent, "");
	assert_int_equal(identity.function, FLEXMEM_PF);
	assert_true(fake_all_closed());
	assert_int_equal(fake.opens, 0);
}

static void nodes_that_change_their_numbers_keep_ids_and_order(void **state)
{
	(void)state;
	fake_node(0, 7, FLEXMEM_MODE_VF);
	fake_node(1, 3, FLEXMEM_MODE_VF);
	on_bus(7, "platform", "card.2");
	on_bus(3, "platform", "card.10");
	expect_function(0, "/dev/flexmem7", "platform-card.2");
	expect_function(1, "/dev/flexmem3", "platform-card.10");
	/* Unbound and bound again: the numbers of the nodes are exchanged. */
	memset(fake.links, 0, sizeof(fake.links));
	on_bus(3, "platform", "card.2");
	on_bus(7, "platform", "card.10");
	expect_function(0, "/dev/flexmem3", "platform-card.2");
	expect_function(1, "/dev/flexmem7", "platform-card.10");
}

/* As versions, 9f would come before 10. */
static void addresses_on_pci_are_hexadecimal(void **state)
{
	(void)state;
	fake_node(0, 1, FLEXMEM_MODE_VF);
	fake_node(1, 2, FLEXMEM_MODE_VF);
	on_bus(1, "pci", "0000:9f:00.0");
	on_bus(2, "pci", "0000:10:00.0");
	expect_function(0, "/dev/flexmem2", "pci-0000:10:00.0");
	expect_function(1, "/dev/flexmem1", "pci-0000:9f:00.0");
}

static void without_sysfs_nodes_are_in_the_order_of_numbers(void **state)
{
	(void)state;
	fake_node(0, 10, FLEXMEM_MODE_VF);
	fake_node(1, 2, FLEXMEM_MODE_VF);
	expect_function(0, "/dev/flexmem2", "flexmem2");
	expect_function(1, "/dev/flexmem10", "flexmem10");
}

static void choose(const char *text, unsigned int count, const char *first,
		   const char *second)
{
	struct flexmem_identity identity;

	setenv("FLEXMEM_VISIBLE_DEVICES", text, 1);
	expect_count(count);
	if (first) {
		assert_int_equal(flexmem_device_identity(0, &identity,
							 sizeof(identity)), 0);
		assert_string_equal(identity.path, first);
	}
	if (second) {
		assert_int_equal(flexmem_device_identity(1, &identity,
							 sizeof(identity)), 0);
		assert_string_equal(identity.path, second);
	}
}

static void visible_devices_choose_and_renumber(void **state)
{
	(void)state;
	pci_card();
	choose("1", 1, "/dev/flexmem2", NULL);
	choose("1,0", 2, "/dev/flexmem2", "/dev/flexmem5");
	choose(" 2 , 0 ", 2, "/dev/flexmem0", "/dev/flexmem5");
	choose("pci-0000:03:00.0,pci-0000:03:00.0-vf0", 2, "/dev/flexmem0",
	       "/dev/flexmem5");
}

static void visible_devices_end_at_what_names_nothing(void **state)
{
	(void)state;
	pci_card();
	choose("", 0, NULL, NULL);
	choose("3", 0, NULL, NULL);
	choose("0,3,1", 1, "/dev/flexmem5", NULL);
	choose("0,-1,1", 1, "/dev/flexmem5", NULL);
	choose("0,,1", 1, "/dev/flexmem5", NULL);
	choose("0,0", 1, "/dev/flexmem5", NULL);
	choose("0 1", 1, "/dev/flexmem5", NULL);
	choose("1x", 0, NULL, NULL);
	choose("18446744073709551616", 0, NULL, NULL);
	choose("pci-0000:03:00.0-vf", 0, NULL, NULL);
	choose("0,", 1, "/dev/flexmem5", NULL);
}

static void visible_devices_hold_for_open(void **state)
{
	struct flexmem_device *device;

	(void)state;
	pci_card();
	setenv("FLEXMEM_VISIBLE_DEVICES", "1,2", 1);
	assert_int_equal(flexmem_device_open(&device, NULL), 0);
	assert_string_equal(flexmem_device_path(device), "/dev/flexmem2");
	flexmem_device_close(device);
	assert_int_equal(flexmem_device_open(&device, "PF"), 0);
	assert_string_equal(flexmem_device_path(device), "/dev/flexmem0");
	flexmem_device_close(device);
	/* A path is a path: the variable is no boundary. */
	assert_int_equal(flexmem_device_open(&device, "/dev/flexmem5"), 0);
	flexmem_device_close(device);
	setenv("FLEXMEM_VISIBLE_DEVICES", "", 1);
	assert_int_equal(flexmem_device_open(&device, NULL), -ENODEV);
}

static void open_by_index(void **state)
{
	struct flexmem_device *device;

	(void)state;
	pci_card();
	assert_int_equal(flexmem_device_open_index(&device, 1), 0);
	assert_string_equal(flexmem_device_path(device), "/dev/flexmem2");
	flexmem_device_close(device);
	assert_int_equal(flexmem_device_open_index(&device, 3), -ENODEV);
	assert_int_equal(flexmem_device_open_index(NULL, 0), -EINVAL);
	fake.nodes[1].open_error = EACCES;
	assert_int_equal(flexmem_device_open_index(&device, 0), -EACCES);
}

static void errors(void **state)
{
	struct flexmem_identity identity;
	unsigned int count;

	(void)state;
	pci_card();
	assert_int_equal(flexmem_device_count(NULL), -EINVAL);
	assert_int_equal(flexmem_device_identity(0, NULL, sizeof(identity)),
			 -EINVAL);
	assert_int_equal(flexmem_device_identity(0, &identity,
						 sizeof(identity) - 4), -EINVAL);
	fake.opendir_error = EMFILE;
	assert_int_equal(flexmem_device_count(&count), -EMFILE);
	fake.opendir_error = ENOENT;
	assert_int_equal(flexmem_device_count(&count), 0);
	assert_int_equal(count, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(vfs_have_the_number_that_their_pf_gives),
		TEST(nodes_that_change_their_numbers_keep_ids_and_order),
		TEST(addresses_on_pci_are_hexadecimal),
		TEST(without_sysfs_nodes_are_in_the_order_of_numbers),
		TEST(visible_devices_choose_and_renumber),
		TEST(visible_devices_end_at_what_names_nothing),
		TEST(visible_devices_hold_for_open),
		TEST(open_by_index),
		TEST(errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
