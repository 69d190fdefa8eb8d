// SPDX-License-Identifier: GPL-2.0
/* Makes the flexmem command use the fake kernel. */
#include "fake.h"

__attribute__((constructor)) static void begin(void)
{
	fake_from_environment();
}
