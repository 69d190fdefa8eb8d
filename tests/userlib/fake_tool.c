// SPDX-License-Identifier: GPL-2.0
/* Puts the fake kernel under the flexmem command. */
#include "fake.h"

__attribute__((constructor)) static void begin(void)
{
	fake_from_environment();
}
