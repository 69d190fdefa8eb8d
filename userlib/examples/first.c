// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
/* cc first.c $(pkg-config --cflags --libs libflexmem) */
#include <flexmem.h>
#include <stdio.h>

int main(void)
{
	struct flexmem_allocated a = { 0 };
	struct flexmem_device *device = NULL;
	char text[512];
	int err = flexmem_device_open(&device, NULL);

	if (!err)
		err = flexmem_device_alloc(device, 1 << 20, 0, 0, &a, sizeof(a));
	flexmem_error_text(err, &a.failure, sizeof(a.failure), text, sizeof(text));
	printf("%s\n", text);
	if (!err)
		printf("at %ld:%ld\n", (long)a.address.region_id, (long)a.address.offset);
	flexmem_device_close(device);
	return err != 0;
}
