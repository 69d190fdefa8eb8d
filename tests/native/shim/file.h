/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Devices, their nodes, open files and mappings; and the system calls that a
 * test makes, such as native_open().
 */
#ifndef _NATIVE_FILE_H
#define _NATIVE_FILE_H

/* ---- devices ---- */

struct kobject {
	refcount_t refs;
};

struct attribute {
	const char *name;
};

struct attribute_group {
	struct attribute **attrs;
};

struct class {
	const char *name;
	char *(*devnode)(const struct device *dev, umode_t *mode);
	const struct attribute_group **dev_groups;
};

struct bus_type;
extern const struct bus_type pci_bus_type;

#define dev_is_pci(dev)		((dev)->bus == &pci_bus_type)

struct device {
	struct kobject kobj;
	struct device *parent;
	const struct bus_type *bus;
	struct class *class;
	dev_t devt;
	void (*release)(struct device *dev);
	void *driver_data;
	char name[32];
};

struct device_attribute {
	struct attribute attr;
	ssize_t (*show)(struct device *dev, struct device_attribute *attr,
			char *buffer);
};

#define DEVICE_ATTR_RO(name) \
	struct device_attribute dev_attr_##name = { \
		.attr = { #name }, \
		.show = name##_show, \
	}
#define ATTRIBUTE_GROUPS(prefix) \
	static const struct attribute_group prefix##_group = { \
		.attrs = prefix##_attrs, \
	}; \
	static const struct attribute_group *prefix##_groups[] = { \
		&prefix##_group, \
		NULL, \
	}

void device_initialize(struct device *dev);
int dev_set_name(struct device *dev, const char *format, ...) __printf(2, 3);
#define dev_name(dev) ((const char *)(dev)->name)
struct device *get_device(struct device *dev);
void put_device(struct device *dev);
int device_add(struct device *dev);
void device_del(struct device *dev);
int class_register(struct class *class);
void class_unregister(struct class *class);
#define devm_add_action_or_reset(dev, action, data) (-ENOMEM)
enum kobject_action { KOBJ_CHANGE };
int kobject_uevent_env(struct kobject *kobj, enum kobject_action action,
		       char *envp[]);

/* ---- files ---- */

struct vm_area_struct;
struct poll_table_struct;
typedef struct poll_table_struct poll_table;

/**
 * struct address_space - all mappings of a node
 * @lock: protects @vmas
 * @vmas: the mappings, linked by &vm_area_struct.mapped
 */
struct address_space {
	spinlock_t lock;
	struct list_head vmas;
};

struct super_block;

struct inode {
	dev_t i_rdev;
	struct address_space *i_mapping;
	struct address_space data;
	refcount_t refs;
};

/**
 * struct file - an open file
 * @f_cred: credentials of the opener
 * @f_mapping: lists the mappings of the file
 * @private_data: for the driver
 * @f_flags: O_RDONLY, O_WRONLY or O_RDWR, with or without O_NONBLOCK
 * @f_mode: FMODE_READ, FMODE_WRITE or both
 * @f_op: operations of the driver
 * @refs: number of descriptors and mappings
 * @tag: for the test: the byte that the test writes into the file's allocations
 * @note: for the test: handles
 */
struct file {
	const struct cred *f_cred;
	struct address_space *f_mapping;
	void *private_data;
	unsigned int f_flags;
	unsigned int f_mode;
	const struct file_operations *f_op;
	refcount_t refs;
	struct cred cred;
	u8 tag;
	u32 note[32];
};

struct seq_file {
	char text[1024];
	size_t length;
	void *private;
};

struct file_operations {
	struct module *owner;
	int (*open)(struct inode *inode, struct file *filp);
	int (*release)(struct inode *inode, struct file *filp);
	ssize_t (*read)(struct file *filp, char __user *to, size_t count,
			loff_t *pos);
	__poll_t (*poll)(struct file *filp, poll_table *wait);
	long (*unlocked_ioctl)(struct file *filp, unsigned int cmd,
			       unsigned long arg);
	long (*compat_ioctl)(struct file *filp, unsigned int cmd,
			     unsigned long arg);
	int (*mmap)(struct file *filp, struct vm_area_struct *vma);
	unsigned long (*get_unmapped_area)(struct file *filp, unsigned long hint,
					   unsigned long length,
					   unsigned long pgoff,
					   unsigned long flags);
	void (*show_fdinfo)(struct seq_file *m, struct file *filp);
};

/* The values of fcntl.h. As in the kernel, the mode of a file is one more. */
#define O_RDONLY 0
#define O_WRONLY 1
#define O_RDWR 2
#define O_ACCMODE 3
#define O_NONBLOCK 04000
#define FMODE_READ 1u
#define FMODE_WRITE 2u
#define EPOLLIN 0x1u
#define EPOLLERR 0x8u
#define EPOLLHUP 0x10u
#define EPOLLRDNORM 0x40u
#define compat_ptr_ioctl NULL
void poll_wait(struct file *filp, wait_queue_head_t *queue, poll_table *wait);
int nonseekable_open(struct inode *inode, struct file *filp);
void seq_puts(struct seq_file *m, const char *text);
void seq_printf(struct seq_file *m, const char *format, ...) __printf(2, 3);

/* ---- nodes ---- */

struct cdev {
	struct module *owner;
	const struct file_operations *ops;
};

#define MINORBITS 20
#define MKDEV(major, minor) (((dev_t)(major) << MINORBITS) | (minor))
#define MAJOR(devt) ((unsigned int)((devt) >> MINORBITS))
#define MINOR(devt) ((unsigned int)((devt) & ((1u << MINORBITS) - 1)))
#define iminor(inode) MINOR((inode)->i_rdev)
int alloc_chrdev_region(dev_t *devt, unsigned int first, unsigned int count,
			const char *name);
void unregister_chrdev_region(dev_t devt, unsigned int count);
void cdev_init(struct cdev *cdev, const struct file_operations *ops);
int cdev_add(struct cdev *cdev, dev_t devt, unsigned int count);
void cdev_del(struct cdev *cdev);

/* The context of the file system that holds the inode of each PF and VF. */
struct fs_context {
	unsigned long magic;
};

struct file_system_type {
	const char *name;
	struct module *owner;
	int (*init_fs_context)(struct fs_context *context);
	void (*kill_sb)(struct super_block *sb);
};

struct super_block {
	int unused;
};

struct vfsmount {
	struct super_block *mnt_sb;
};

struct pseudo_fs_context;
struct pseudo_fs_context *init_pseudo(struct fs_context *context,
				      unsigned long magic);
#define kill_anon_super NULL
int simple_pin_fs(struct file_system_type *type, struct vfsmount **mount,
		  int *count);
void simple_release_fs(struct vfsmount **mount, int *count);
struct inode *alloc_anon_inode(struct super_block *sb);
void iput(struct inode *inode);

/* ---- maps ---- */

#define VM_READ 0x1ul
#define VM_WRITE 0x2ul
#define VM_EXEC 0x4ul
#define VM_SHARED 0x8ul
#define VM_MAYEXEC 0x40ul
#define VM_PFNMAP 0x400ul
#define VM_IO 0x4000ul
#define VM_DONTEXPAND 0x40000ul
#define VM_DONTDUMP 0x4000000ul
#define VM_FAULT_OOM 0x1u
#define VM_FAULT_SIGBUS 0x2u
#define VM_FAULT_NOPAGE 0x100u
#define VM_FAULT_RETRY 0x400u
#define VM_FAULT_FALLBACK 0x800u
#define FAULT_FLAG_WRITE 0x1u
#define FAULT_FLAG_ALLOW_RETRY 0x4u
#define FAULT_FLAG_RETRY_NOWAIT 0x8u

struct vm_operations_struct;

typedef struct { unsigned long pgprot; } pgprot_t;
#define pgprot_val(prot) ((prot).pgprot)
#define __pgprot(value) ((pgprot_t) { value })
#define pgprot_writecombine(prot) __pgprot(pgprot_val(prot) | 8)
#define pgprot_noncached(prot) __pgprot(pgprot_val(prot) | 16)
#define pgprot_decrypted(prot) (prot)

/**
 * struct vm_area_struct - a mapping
 * @vm_start: first address
 * @vm_end: end, exclusive
 * @vm_pgoff: offset in the file, in pages
 * @vm_flags: VM_SHARED and so on
 * @vm_page_prot: 0, unless the driver has changed it
 * @vm_ops: the driver's operations
 * @vm_private_data: data of the driver
 * @vm_file: a reference is held
 * @mapped: in &address_space.vmas
 * @lock: protects @pfn; held while the CPU uses a page table entry
 * @pfn: frame of each page, or 0
 * @nr_huge: number of huge pages that were mapped; each is stored as its small
 *	pages
 * @vm_mm: its process
 */
struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_pgoff;
	unsigned long vm_flags;
	pgprot_t vm_page_prot;
	const struct vm_operations_struct *vm_ops;
	void *vm_private_data;
	struct file *vm_file;
	struct list_head mapped;
	spinlock_t lock;
	unsigned long *pfn;
	unsigned int nr_huge;
	struct mm_struct *vm_mm;
};

/**
 * struct mm_struct - a process, which has one mapping
 * @mmap_lock: held during page faults and changes of the mapping
 * @vma: its mapping
 */
struct mm_struct {
	struct rw_semaphore mmap_lock;
	struct vm_area_struct vma;
};

static inline void mmap_read_unlock(struct mm_struct *mm)
{
	up_read(&mm->mmap_lock);
}

struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long pgoff;
	unsigned long address;
	unsigned int flags;
};

struct vm_operations_struct {
	void (*open)(struct vm_area_struct *vma);
	void (*close)(struct vm_area_struct *vma);
	vm_fault_t (*fault)(struct vm_fault *vmf);
	vm_fault_t (*huge_fault)(struct vm_fault *vmf, unsigned int order);
};

static inline void vm_flags_mod(struct vm_area_struct *vma, unsigned long set,
				unsigned long clear)
{
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
}

vm_fault_t vmf_insert_pfn(struct vm_area_struct *vma, unsigned long address,
			  unsigned long pfn);
#define CONFIG_ARCH_SUPPORTS_PMD_PFNMAP 1
#define PMD_ORDER 9
#define PFN_DEV 0
#define __pfn_to_pfn_t(pfn, flags) ((pfn) | (flags))
vm_fault_t vmf_insert_pfn_pmd(struct vm_fault *vmf, unsigned long pfn,
			      bool write);
unsigned long thp_get_unmapped_area(struct file *filp, unsigned long hint,
				    unsigned long length, unsigned long pgoff,
				    unsigned long flags);
void unmap_mapping_range(struct address_space *mapping, loff_t start,
			 loff_t length, int even_cows);

/* System calls of a process. A call that fails returns a negative errno. */
struct file *native_open(unsigned int minor, unsigned int flags);
void native_file_get(struct file *file);
void native_close(struct file *file);
/* Descriptors: numbers that all tasks share. */
#define NATIVE_FILES 256
bool native_install(unsigned int fd, struct file *file);
struct file *native_fdget(unsigned int fd);
struct file *native_uninstall(unsigned int fd);
long native_ioctl(struct file *file, unsigned int cmd, void *arg);
ssize_t native_read(struct file *file, void *to, size_t count);
__poll_t native_poll(struct file *file);
void native_fdinfo(struct file *file, struct seq_file *m);
struct vm_area_struct *native_mmap(struct file *file, u64 offset, size_t length,
				   unsigned long flags);
struct vm_area_struct *native_fork_map(struct vm_area_struct *vma);
void native_munmap(struct vm_area_struct *vma);
int native_touch(struct vm_area_struct *vma, size_t offset, u8 *byte,
		 bool write);

#endif /* _NATIVE_FILE_H */
