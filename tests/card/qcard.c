// SPDX-License-Identifier: GPL-2.0
/*
 * A PCIe card with SR-IOV, AER, FLR, D3hot, MSI-X and bus-master DMA for Debian's own QEMU 7.2, as a shared object:
 * LD_PRELOAD=qcard.so qemu-system-x86_64 ... -device qcard,id=card0,bus=rp0,dir=DIR. It is a front end of the card's
 * process (card.c) in DIR, and speaks the ivshmem protocol to it: function FIRST for the PF, and the next ones for its
 * VFs. It passes requests on, shows the card's memory in BAR 2, and moves bytes by DMA when the firmware asks for it.
 * Its registers in BAR 0 are those of Documentation/examples/npu.c. It prints what it does to QEMU's stderr.
 *
 * Properties: dir, first (default 0), vfs (default 4), gone (set by qom-set: the card answers all ones, as after a
 * surprise removal).
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/main-loop.h"
#include "hw/pci/pci.h"
#include "hw/pci/msix.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_sriov.h"
#include "hw/qdev-properties.h"
#include "qom/object.h"
#include <sys/un.h>
#include "registers.h"

/* The PF, and each VF. Both are among QEMU's ids for experiments. */
#define QCARD_VENDOR	0x1af4
#define QCARD_PF	0x10fe
#define QCARD_VF	0x10ff

/* Where the capabilities are in configuration space. */
#define AT_PM		0x60
#define AT_PCIE		0x80
#define AT_AER		0x100
#define AT_ARI		0x150
#define AT_SRIOV	0x160
/* The first extended capability must be at 0x100, or QEMU aborts. */
#define AT_VF_ARI	0x100

#define MMIO_SIZE	4096
#define VECTORS		2

enum { EVENT_REPLY = 1, EVENT_CAPACITY = 2, EVENT_DEAD = 4 };

typedef struct QCard {
	PCIDevice parent_obj;
	char *dir;
	uint32_t first, vfs;
	bool gone;
	int socket;
	int bell[CARD_VECTORS], vector[CARD_VECTORS];	/* eventfds to the card, and from it */
	MemoryRegion mmio, bar, window, ones, msix;
	uint64_t size;
	uint8_t *memory;	/* the card's memory, with the control area */
	uint8_t *registers;	/* the function's page of it */
	uint32_t event, mask;
	uint32_t deaths, capacities;	/* the card's counters as of the last event */
} QCard;

static volatile uint32_t *reg32(QCard *s, unsigned int offset)
{
	return (volatile uint32_t *)(s->registers + offset);
}

static volatile uint64_t *reg64(QCard *s, unsigned int offset)
{
	return (volatile uint64_t *)(s->registers + offset);
}

static const char *name_of(QCard *s)
{
	return pci_is_vf(PCI_DEVICE(s)) ? "VF" : "PF";
}

static QCard *pf_of(QCard *s)
{
	return pci_is_vf(PCI_DEVICE(s)) ? (QCard *)pcie_sriov_get_pf(PCI_DEVICE(s)) : s;
}

/* Number of the function in the card's process. */
static unsigned int index_of(QCard *s)
{
	QCard *pf = pf_of(s);

	return pf->first + (s == pf ? 0 : 1 + pcie_sriov_vf_number(PCI_DEVICE(s)));
}

static bool asleep(QCard *s)
{
	return pci_get_word(PCI_DEVICE(s)->config + AT_PM + PCI_PM_CTRL) & PCI_PM_CTRL_STATE_MASK;
}

static void ring(QCard *s, unsigned int bell)
{
	uint64_t one = 1;

	smp_mb();
	if (write(s->bell[bell], &one, sizeof(one)) != sizeof(one))
		fprintf(stderr, "qcard: cannot ring the card\n");
}

/*
 * Asks the card's hardware, which answers in milliseconds unless the host is busy. The caller holds QEMU's lock, so no
 * transfer is under way.
 */
static bool await(QCard *s, unsigned int asked, unsigned int answer)
{
	for (int i = 0; i < 2000000; i++) {
		if (*reg32(s, asked) == *reg32(s, answer))
			return true;
		g_usleep(50);
	}
	fprintf(stderr, "qcard: the card does not answer\n");
	return false;
}

static void ask_for_reset(QCard *s)
{
	*reg32(s, CARD_RESET) = *reg32(s, CARD_WAS_RESET) + 1;
	ring(s, CARD_BELL_URGENT);
}

/* [events] */
static void raise_event(QCard *s, uint32_t event)
{
	s->event |= event;
	if (s->event & s->mask && !s->gone)
		msix_notify(PCI_DEVICE(s), 0);
}

static bool drain(int fd)
{
	uint64_t count;

	return read(fd, &count, sizeof(count)) == sizeof(count);
}

static void on_reply(void *opaque)
{
	QCard *s = opaque;

	if (drain(s->vector[CARD_VECTOR_REPLY]))
		raise_event(s, EVENT_REPLY);
}

static void on_news(void *opaque)
{
	QCard *s = opaque;
	uint32_t deaths = *reg32(s, CARD_DEATHS), capacities = *reg32(s, CARD_CAPACITIES), event = 0;

	drain(s->vector[CARD_VECTOR_NEWS]);
	if (deaths != s->deaths)
		event |= EVENT_DEAD;
	if (capacities != s->capacities)
		event |= EVENT_CAPACITY;
	s->deaths = deaths;
	s->capacities = capacities;
	if (event)
		raise_event(s, event);
}

/* The firmware wants bytes moved. A STOP or RESET has withdrawn its wish before the driver learns that it is done. */
static void on_dma(void *opaque)
{
	QCard *s = opaque;
	PCIDevice *d = PCI_DEVICE(s);
	uint32_t number = *reg32(s, CARD_DMA_SEND);
	uint64_t at, length, bus;
	MemTxResult result = MEMTX_ERROR;

	drain(s->vector[CARD_VECTOR_DMA]);
	smp_mb();
	if (!number || number == *reg32(s, CARD_DMA_DONE))
		return;
	at = *reg64(s, CARD_DMA_CARD_L);
	length = *reg64(s, CARD_DMA_LENGTH_L);
	bus = *reg64(s, CARD_DMA_BUS_L);
	if (!s->gone && at <= s->size && length <= s->size - at)
		result = *reg32(s, CARD_DMA_TO_HOST) ? pci_dma_write(d, bus, s->memory + at, length) :
						       pci_dma_read(d, bus, s->memory + at, length);
	if (result != MEMTX_OK)
		fprintf(stderr, "qcard: DMA of %s %u to bus address %#" PRIx64 " was refused\n", name_of(s), index_of(s), bus);
	*reg32(s, CARD_DMA_STATUS) = result != MEMTX_OK;
	smp_mb();
	*reg32(s, CARD_DMA_DONE) = number;
	ring(s, CARD_BELL_DMA_DONE);
}

/* [registers] */
static uint64_t mmio_read(void *opaque, hwaddr offset, unsigned int size)
{
	QCard *s = opaque;
	uint64_t value = 0;

	if (s->gone || asleep(s))
		return UINT64_MAX;
	switch (offset) {
	case CARD_EVENT:
		value = s->event;
		s->event = 0;
		return value;
	case CARD_EVENT_MASK:
		return s->mask;
	/* The read ends after what was written has been carried out. */
	case CARD_RESET:
		return await(s, CARD_RESET, CARD_WAS_RESET) ? 0 : UINT64_MAX;
	case CARD_STOP:
		return !await(s, CARD_STOP, CARD_STOPPED);
	}
	memcpy(&value, s->registers + offset, size);
	return value;
}

static void mmio_write(void *opaque, hwaddr offset, uint64_t value, unsigned int size)
{
	QCard *s = opaque;

	if (s->gone || asleep(s))
		return;
	switch (offset) {
	case CARD_EVENT_MASK:
		s->mask = value;
		return;
	case CARD_RESET:
		s->event = 0;
		ask_for_reset(s);
		return;
	case CARD_STOP:
		*reg32(s, CARD_STOP) = *reg32(s, CARD_SEND);
		ring(s, CARD_BELL_URGENT);
		return;
	case CARD_COMMAND ... CARD_MEMORY_L + 7:
	case CARD_OFFSET_L ... CARD_BUFFER_L + 7:
	case CARD_FROM_L ... CARD_FROM_OFFSET_L + 7:
		memcpy(s->registers + offset, &value, size);
		return;
	case CARD_SEND:
		smp_mb();
		*reg32(s, CARD_SEND) = value;
		ring(s, CARD_BELL_REQUEST);
		return;
	}
}

static const MemoryRegionOps mmio_ops = {
	.read = mmio_read,
	.write = mmio_write,
	.endianness = DEVICE_LITTLE_ENDIAN,
	.valid = { 4, 8 },
	.impl = { 4, 8 },
};

/* The CPU reads all ones behind the window of a card that is gone. */
static uint64_t ones_read(void *opaque, hwaddr offset, unsigned int size)
{
	return UINT64_MAX;
}

static void ones_write(void *opaque, hwaddr offset, uint64_t value, unsigned int size)
{
}

static const MemoryRegionOps ones_ops = {
	.read = ones_read,
	.write = ones_write,
	.endianness = DEVICE_LITTLE_ENDIAN,
	.valid = { 1, 8 },
	.impl = { 1, 8 },
};

/* [connection] */
/* Receives one message of the ivshmem protocol: a number, and the descriptor that comes with it, or -1. */
static bool hear(QCard *s, int64_t *value, int *fd)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { value, sizeof(*value) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *header;

	*fd = -1;
	if (recvmsg(s->socket, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC) != sizeof(*value))
		return false;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return true;
}

static bool hear_eventfds(QCard *s, int64_t peer, int *eventfds)
{
	int64_t value;

	for (int v = 0; v < CARD_VECTORS; v++)
		if (!hear(s, &value, &eventfds[v]) || value != peer || eventfds[v] < 0)
			return false;
	return true;
}

/* Takes the card's greeting. Returns the descriptor of its memory, or -1. */
static int greet(QCard *s)
{
	int64_t version, id, value;
	int fd, memory;

	if (!hear(s, &version, &fd) || version != 0 || !hear(s, &id, &fd) || id != index_of(s) + 1 ||
	    !hear_eventfds(s, 0, s->bell) || !hear(s, &value, &memory) || value != -1 || memory < 0)
		return -1;
	if (hear_eventfds(s, id, s->vector))
		return memory;
	close(memory);
	return -1;
}

static void disconnect(QCard *s)
{
	for (int v = 0; v < CARD_VECTORS; v++) {
		if (s->vector[v] > 0) {
			qemu_set_fd_handler(s->vector[v], NULL, NULL, NULL);
			close(s->vector[v]);
		}
		if (s->bell[v] > 0)
			close(s->bell[v]);
		s->vector[v] = s->bell[v] = 0;
	}
	if (s->socket > 0)
		close(s->socket);
	s->socket = 0;
}

/* Connects to the card's process, and makes the window out of its memory. */
static bool connect_card(QCard *s, Error **errp)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat st;
	int memory;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/f%u.sock", pf_of(s)->dir, index_of(s));
	s->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->socket < 0 || connect(s->socket, (struct sockaddr *)&address, sizeof(address))) {
		error_setg(errp, "no card at %s: %s", address.sun_path, strerror(errno));
		return false;
	}
	memory = greet(s);
	if (memory < 0 || fstat(memory, &st)) {
		error_setg(errp, "the card at %s does not speak the ivshmem protocol", address.sun_path);
		return false;
	}
	s->size = st.st_size;
	memory_region_init_ram_from_fd(&s->window, OBJECT(s), "qcard-window", s->size, RAM_SHARED, memory, 0, errp);
	if (*errp)
		return false;
	s->memory = memory_region_get_ram_ptr(&s->window);
	s->registers = s->memory + index_of(s) * CARD_AREA;
	s->deaths = *reg32(s, CARD_DEATHS);
	s->capacities = *reg32(s, CARD_CAPACITIES);
	*reg32(s, CARD_BUS_MASTER) = 1;
	qemu_set_fd_handler(s->vector[CARD_VECTOR_REPLY], on_reply, NULL, s);
	qemu_set_fd_handler(s->vector[CARD_VECTOR_NEWS], on_news, NULL, s);
	qemu_set_fd_handler(s->vector[CARD_VECTOR_DMA], on_dma, NULL, s);
	return true;
}

/* [device] */
/*
 * A reset from outside: of the bus, of the system, or an FLR. QEMU 7.2 keeps VF Enable set over a reset of the PF, and
 * then Linux believes that its VFs are still there.
 */
static void qcard_reset(DeviceState *dev)
{
	QCard *s = (QCard *)dev;
	PCIDevice *d = PCI_DEVICE(dev);

	fprintf(stderr, "qcard: reset of %s %u\n", name_of(s), index_of(s));
	if (!pci_is_vf(d)) {
		pcie_sriov_pf_disable_vfs(d);
		pci_set_word(d->config + AT_SRIOV + PCI_SRIOV_CTRL, 0);
		pci_set_word(d->config + AT_SRIOV + PCI_SRIOV_NUM_VF, 0);
	}
	s->event = s->mask = 0;
	*reg64(s, CARD_BUFFER_L) = 0;
	ask_for_reset(s);
	await(s, CARD_RESET, CARD_WAS_RESET);
}

static void make_regions(QCard *s)
{
	memory_region_init_io(&s->mmio, OBJECT(s), &mmio_ops, s, "qcard-mmio", MMIO_SIZE);
	memory_region_init(&s->bar, OBJECT(s), "qcard-bar", s->size);
	memory_region_add_subregion(&s->bar, 0, &s->window);
	memory_region_init_io(&s->ones, OBJECT(s), &ones_ops, s, "qcard-ones", s->size);
	memory_region_add_subregion_overlap(&s->bar, 0, &s->ones, 1);
	memory_region_set_enabled(&s->ones, false);
}

static bool realize_pf(QCard *s, Error **errp)
{
	PCIDevice *d = PCI_DEVICE(s);
	const uint8_t bar = PCI_BASE_ADDRESS_MEM_TYPE_64, window = bar | PCI_BASE_ADDRESS_MEM_PREFETCH;

	pci_register_bar(d, 0, bar, &s->mmio);
	pci_register_bar(d, 2, window, &s->bar);
	if (msix_init_exclusive_bar(d, VECTORS, 4, errp) ||
	    pcie_aer_init(d, PCI_ERR_VER, AT_AER, PCI_ERR_SIZEOF, errp) < 0)
		return false;
	pcie_cap_deverr_init(d);
	pcie_ari_init(d, AT_ARI, 1);
	pcie_sriov_pf_init(d, AT_SRIOV, "qcard-vf", QCARD_VF, s->vfs, s->vfs, 1, 1);
	pcie_sriov_pf_init_vf_bar(d, 0, bar, MMIO_SIZE);
	pcie_sriov_pf_init_vf_bar(d, 2, window, s->size);
	pcie_sriov_pf_init_vf_bar(d, 4, bar, MMIO_SIZE);
	return true;
}

static bool realize_vf(QCard *s, Error **errp)
{
	PCIDevice *d = PCI_DEVICE(s);

	pcie_sriov_vf_register_bar(d, 0, &s->mmio);
	pcie_sriov_vf_register_bar(d, 2, &s->bar);
	memory_region_init(&s->msix, OBJECT(s), "qcard-msix", MMIO_SIZE);
	if (msix_init(d, VECTORS, &s->msix, 4, 0, &s->msix, 4, MMIO_SIZE / 2, 0, errp))
		return false;
	pcie_sriov_vf_register_bar(d, 4, &s->msix);
	pcie_ari_init(d, AT_VF_ARI, 1);
	return true;
}

static void qcard_realize(PCIDevice *d, Error **errp)
{
	ERRP_GUARD();
	QCard *s = (QCard *)d;

	if (!pf_of(s)->dir) {
		error_setg(errp, "qcard needs dir=, the directory of the card's process");
		return;
	}
	if (!connect_card(s, errp)) {
		disconnect(s);
		return;
	}
	make_regions(s);
	pci_add_capability(d, PCI_CAP_ID_PM, AT_PM, PCI_PM_SIZEOF, &error_abort);
	/* Version 3, as QEMU's NVMe device has it, without "no soft reset": a function that wakes up has lost its registers. */
	pci_set_word(d->config + AT_PM + PCI_PM_PMC, 3);
	pci_set_word(d->wmask + AT_PM + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
	pcie_endpoint_cap_init(d, AT_PCIE);
	pcie_cap_flr_init(d);
	if (!(pci_is_vf(d) ? realize_vf(s, errp) : realize_pf(s, errp)))
		return;
	msix_vector_use(d, 0);
}

static void qcard_exit(PCIDevice *d)
{
	QCard *s = (QCard *)d;

	fprintf(stderr, "qcard: exit of %s %u\n", name_of(s), index_of(s));
	if (!pci_is_vf(d)) {
		pcie_sriov_pf_exit(d);
		pcie_aer_exit(d);
		msix_uninit_exclusive_bar(d);
	} else {
		msix_unuse_all_vectors(d);
		msix_uninit(d, &s->msix, &s->msix);
	}
	pcie_cap_exit(d);
	disconnect(s);
}

static uint32_t config_read(PCIDevice *d, uint32_t address, int length)
{
	return ((QCard *)d)->gone ? UINT32_MAX >> (32 - 8 * length) : pci_default_read_config(d, address, length);
}

static void config_write(PCIDevice *d, uint32_t address, uint32_t value, int length)
{
	QCard *s = (QCard *)d;
	bool slept = asleep(s);

	if (s->gone)
		return;
	pci_default_write_config(d, address, value, length);
	pcie_cap_flr_write_config(d, address, value, length);
	if (!pci_is_vf(d))
		pcie_aer_write_config(d, address, value, length);
	if (slept != asleep(s))
		fprintf(stderr, "qcard: %s %u %s\n", name_of(s), index_of(s), slept ? "wakes up" : "sleeps (D3hot)");
	if (slept && !asleep(s)) {
		s->event = s->mask = 0;
		*reg64(s, CARD_BUFFER_L) = 0;
	}
}

static void set_gone(QCard *s, bool gone)
{
	s->gone = gone;
	memory_region_set_enabled(&s->ones, gone);
}

static bool get_gone_property(Object *o, Error **errp)
{
	return ((QCard *)o)->gone;
}

/* The VFs go with the PF. */
static void set_gone_property(Object *o, bool gone, Error **errp)
{
	PCIDevice *d = PCI_DEVICE(o), *vf;

	set_gone((QCard *)o, gone);
	for (int i = 0; (vf = pcie_sriov_get_vf_at_index(d, i)); i++)
		set_gone((QCard *)vf, gone);
}

static Property qcard_properties[] = {
	DEFINE_PROP_STRING("dir", QCard, dir),
	DEFINE_PROP_UINT32("first", QCard, first, 0),
	DEFINE_PROP_UINT32("vfs", QCard, vfs, 4),
	DEFINE_PROP_END_OF_LIST(),
};

static void qcard_class(ObjectClass *c, void *vf)
{
	PCIDeviceClass *k = PCI_DEVICE_CLASS(c);

	k->realize = qcard_realize;
	k->exit = qcard_exit;
	k->config_read = config_read;
	k->config_write = config_write;
	k->vendor_id = QCARD_VENDOR;
	k->device_id = vf ? QCARD_VF : QCARD_PF;
	k->class_id = 0x1200;	/* processing accelerator */
	DEVICE_CLASS(c)->reset = qcard_reset;
	if (vf)
		return;
	device_class_set_props(DEVICE_CLASS(c), qcard_properties);
	object_class_property_add_bool(c, "gone", get_gone_property, set_gone_property);
}

static InterfaceInfo pcie_interface[] = { { INTERFACE_PCIE_DEVICE }, {} };
static const TypeInfo qcard_types[] = {
	{ .name = "qcard", .parent = TYPE_PCI_DEVICE, .instance_size = sizeof(QCard), .class_init = qcard_class,
	  .interfaces = pcie_interface },
	{ .name = "qcard-vf", .parent = TYPE_PCI_DEVICE, .instance_size = sizeof(QCard), .class_init = qcard_class,
	  .class_data = (void *)1, .interfaces = pcie_interface },
};

static void __attribute__((constructor)) qcard_load(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(qcard_types); i++)
		type_register_static(&qcard_types[i]);
}
