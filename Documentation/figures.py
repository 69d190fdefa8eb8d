# SPDX-License-Identifier: GPL-2.0
"""Figures that both a page and a constant in the sources state.

check.py compares both. A figure is a number, with commas or a unit, or one of WORDS; or SZ_64K in
a source.
"""
import re

WORDS = {'two': 2, 'three': 3, 'four': 4, 'five': 5, 'eight': 8, 'ten': 10, 'fifty': 50, 'thousand': 1000}
UNITS = {'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}

# Patterns of sources that more than one page uses.
SLOTS_OF_A_VF = r'SIM_MIN_SLOTS (\d+)\s.*?SIM_MAX_SLOTS (\d+)'
SIZES = r'default_sizes\[\] = \{\s+(\d+)ULL \* SZ_1G, (\d+)ULL \* SZ_1G, (\d+)ULL \* SZ_1G'
HANDLES = r'FLEXMEM_HANDLE_INDEX_BITS (\d+)\s.*?FLEXMEM_HANDLE_KEPT (\d+)'

# (page, pattern in the page, source, pattern in the source[, function that computes the figures of the page from those
# of the source])
FIGURES = (
    ('cache.rst', r'``MODERATE``\n     - (\d+) %', 'uapi/linux/flexmem.h', r'FLEXMEM_MODERATE_ENTER (\d+)'),
    ('cache.rst', r'``MODERATE``\n.*\n     - (\d+) %', 'uapi/linux/flexmem.h', r'FLEXMEM_MODERATE_LEAVE (\d+)'),
    ('cache.rst', r'``CRITICAL``\n     - (\d+) %', 'uapi/linux/flexmem.h', r'FLEXMEM_CRITICAL_ENTER (\d+)'),
    ('cache.rst', r'``CRITICAL``\n.*\n     - (\d+) %', 'uapi/linux/flexmem.h', r'FLEXMEM_CRITICAL_LEAVE (\d+)'),
    ('concepts.rst', r'is a multiple of (\d+)', 'kmod/block/block.h', r'FLEXMEM_ALIGN (\d+)'),
    ('decisions.rst', r'alignment are limited to (\d+)', 'kmod/block/block.h', r'FLEXMEM_FIT_TRIES (\d+)'),
    ('decisions.rst', r'A struct above (\d+) bytes', 'kmod/ioctl.h', r'FLEXMEM_MAX_STRUCT (SZ_\w+)'),
    ('decisions.rst', r'VFs from (\d+) on', 'kmod/chardev.h', r'FLEXMEM_MAX_PFS (\d+)'),
    ('driver-guide.rst', r'`FLEXMEM_COPY_MAX`` \((\d+\s+MiB)', 'kmod/include/flexmem/device_ops.h',
     r'FLEXMEM_COPY_MAX \(\(u64\)(SZ_\w+)'),
    ('index.rst', r'up to (\d+) regions', 'kmod/settings.c', r'Most regions of a function[^;]*?default (\d+)'),
    ('simulator.rst', r'in multiples of (\d+ MiB)', 'kmod/sim/domains.h', r'SIM_GRANULE (SZ_\w+)'),
    ('simulator.rst', r'on-chip memory in multiples of (\d+ KiB)', 'kmod/sim/domains.h', r'SIM_ON_CHIP_GRANULE (SZ_\w+)'),
    ('simulator.rst', r'in the queue \((\d+) for each', 'kmod/sim/mailbox.h', r'SIM_QUEUE (\d+)'),
    ('simulator.rst', r'0 to (\d+) microseconds', 'kmod/sim/mailbox.h', r'SIM_MAX_LATENCY_US (\d+)'),
    ('simulator.rst', r'(\d+ MiB) at a time', 'kmod/include/flexmem/device_ops.h', r'FLEXMEM_COPY_MAX \(\(u64\)(SZ_\w+)'),
    ('uapi.rst', r'pieces of up to (\d+ KiB)', 'kmod/include/flexmem/device_ops.h', r'FLEXMEM_RW_MAX (SZ_\w+)'),
    ('uapi.rst', r'pieces of up to (\d+ MiB)', 'kmod/include/flexmem/device_ops.h',
     r'FLEXMEM_COPY_MAX \(\(u64\)(SZ_\w+)'),
    ('why-not-drm.rst', r'type out of (\w+)', 'include/drm/ttm/ttm_resource.h', r'TTM_NUM_MEM_TYPES (\d+)'),
    ('tenants.rst', r'(\d+) processes of', 'tests/torture/torture.h', r'NR_SLOTS (\d+)'),
    ('tenants.rst', r'processes of (\d+) users', 'tests/torture/torture.h', r'NR_USERS (\d+)'),
    ('tenants.rst', r'users with (\d+) threads', 'tests/torture/torture.h', r'NR_THREADS (\d+)'),
    ('tenants.rst', r'default of\s+(\d+) us', 'lib/Kconfig.kcsan', r'KCSAN_UDELAY_TASK\n[\s\S]*?default (\d+)'),
    ('testing.rst', r'together run less than (\d+) %', 'tests/native/coverage.sh', r'least=\$\{1:-(\d+)\}'),
    ('testing.rst', r'(\d+),000 random operations with each', 'tests/kunit/random_kunit.c', r'sampled_ops = (\d+)000'),
    ('testing.rst', r'whole suite: (\d+),000 operations', 'tests/check.sh', r'FLEXMEM_OPS:-(\d+)000'),
    ('testing.rst', r'(\d+),000 operations of the torture', 'tests/check.sh', r'long \]\] \|\| ops=(\d+)000'),
    ('testing.rst', r'(\w+) million operations, in', 'tests/native/volume.sh', r'pieces=\$\{2:-(\d+)\}'),
    ('testing.rst', r'runs (\w+) pieces of a million', 'tests/native/volume.sh', r'pieces=\$\{2:-(\d+)\}'),
    ('testing.rst', r'(\w+) tasks of three users', 'tests/native/torture.h', r'TENANTS (\d+)'),
    ('testing.rst', r'tasks of (\w+) users', 'tests/native/torture.h', r'USERS (\d+)'),
    ('testing.rst', r'Each (\d+)th point', 'tests/native/run.sh', r'stride=\$\{stride:-(\d+)\}'),
    ('testing.rst', r'may cost\s+(\w+) times', 'tests/native/steps.c', r'define TIMES (\d+)'),
    ('testing.rst', r'and (\w+\s+thousand)\s+random inputs', 'tests/native/run.sh', r'fuzz -n (\d+)'),
    ('testing.rst', r'check`` tries (\w+)', 'tests/check.sh', r'some=\(-n (\d+)\)'),
    ('testing.rst', r'all but (\w+) planted', 'tests/check.sh', r'MUTANTS:-(\d+)'),
    ('testing.rst', r'one of ([\d,]+) allocations', 'tests/bench/pairs.c', r'LIVE (\d+)'),
    ('testing.rst', r'another, ([\d,]+) times', 'tests/bench/pairs.c', r'PAIRS (\d+)'),
    ('testing.rst', r'batches of (\d+)', 'tests/bench/pairs.c', r'BATCH (\d+)'),
    ('testing.rst', r'VF\s+of (\d+) slots', 'tests/vm/bench.sh', r'slots=(\d+)'),
    ('testing.rst', r'PF of (\d+) slots', 'tests/vm/bench.sh', r'max_regions=(\d+)'),
    ('testing.rst', r'fastest of (\d+) replays', 'tests/bench/main.c', r'TIMED_RUNS (\d+)'),
    ('uapi.rst', r'that is (\d+) at most', 'kmod/gate/function.h', r'FLEXMEM_MAX_SLOTS (\d+)'),
    ('images/overview.svg', r'(\d+) to (\d+) slots', 'kmod/sim/firmware.h', SLOTS_OF_A_VF),
    ('images/overview.svg', r'regions are large: (\d+) GiB,.*?(\d+) GiB or (\d+) GiB', 'kmod/settings.c', SIZES),
    ('index.rst', r'with (\d+) to (\d+) entries', 'kmod/sim/firmware.h', SLOTS_OF_A_VF),
    ('index.rst', r'length up to a multiple of (\d+) bytes', 'kmod/block/block.h', r'FLEXMEM_ALIGN (\d+)'),
    ('index.rst', r'regions of (\d+), (\d+) or (\d+) GiB', 'kmod/settings.c', SIZES),
    ('index.rst', r'flexmem0`` to ``(\d+)``', 'kmod/chardev.h', r'FLEXMEM_MAX_PFS (\d+)', lambda pfs: pfs - 1),
    ('index.rst', r'VFs begin at ``(\d+)``', 'kmod/chardev.h', r'FLEXMEM_MAX_PFS (\d+)'),
    ('index.rst', r'when (\d+) % of the function', 'uapi/linux/flexmem.h', r'FLEXMEM_MODERATE_ENTER (\d+)'),
    ('index.rst', r'more\s+when (\d+) % are', 'uapi/linux/flexmem.h', r'FLEXMEM_CRITICAL_ENTER (\d+)'),
    ('concepts.rst', r'VF with 8 slots, regions of (\d+) GiB reach (\d+) GiB', 'kmod/settings.c', SIZES,
     lambda largest, *others: (largest, 8 * largest)),
    ('concepts.rst', r'mode is (\d+),', 'kmod/chardev.c', r'is_pf\(fdev\) \? (\d+) : '),
    ('concepts.rst', r'VF has mode (\d+),', 'kmod/chardev.c', r'is_pf\(fdev\) \? \d+ : (\d+)'),
    ('concepts.rst', r'asks the firmware for (\d+) GiB, the first', 'kmod/settings.c', SIZES, lambda first, *others: first),
    ('concepts.rst', r'order: (\d+) GiB, (\d+) GiB, (\d+) GiB unless', 'kmod/settings.c', SIZES),
    ('concepts.rst', r'deeper than (\d+) levels', 'kmod/settings.h', r'FLEXMEM_MAX_DEPTH (\d+)'),
    ('internals.rst', r'size \+ alignment - (\d+)', 'kmod/block/block.h', r'FLEXMEM_ALIGN (\d+)'),
    ('internals.rst', r'alignment above (\d+) the search', 'kmod/block/block.h', r'FLEXMEM_ALIGN (\d+)'),
    ('internals.rst', r'size is a multiple of (\d+)', 'kmod/block/block.h', r'FLEXMEM_ALIGN (\d+)'),
    ('decisions.rst', r'has at most (\d+) entries', 'kmod/ioctl.h', r'FLEXMEM_MAX_BATCH (\d+)'),
    ('decisions.rst', r'when at least (\d+) are free', 'kmod/alloc/handle.h', r'FLEXMEM_HANDLE_KEPT (\d+)'),
    ('decisions.rst', r'next of (\d+) generations', 'kmod/alloc/handle.h', HANDLES, lambda bits, kept: 1 << (31 - bits)),
    ('decisions.rst', r'after (\d+) x (\d+) = (\d+) further', 'kmod/alloc/handle.h', HANDLES,
     lambda bits, kept: (kept, 1 << (31 - bits), kept << (31 - bits))),
    ('decisions.rst', r'up to (\d+) allocation structs and (\d+) block', 'kmod/block/spare.h', r'FLEXMEM_STOCK_MOST (\d+)',
     lambda most: (most, most)),
    ('decisions.rst', r'base of a region of (\d+ GiB) or more is aligned to (\d+ GiB)', 'kmod/gate/function.c',
     r'size < (SZ_\w+) \? granule : (SZ_\w+);'),
    ('decisions.rst', r'within (\d+) of 2\^64', 'kmod/block/block.h', r'FLEXMEM_ALIGN (\d+)', lambda align: align - 1),
    ('decisions.rst', r'largest multiple of (\d+)', 'kmod/block/block.h', r'FLEXMEM_ALIGN (\d+)'),
    ('decisions.rst', r'After (\w+) failed attempts', 'kmod/gate/function.h', r'FLEXMEM_RELEASE_TRIES (\d+)'),
    ('decisions.rst', r'\*\*(\w+) timeouts in a row', 'kmod/gate/function.h', r'FLEXMEM_TIMEOUTS (\d+)'),
    ('decisions.rst', r'After (\w+) timeouts in a row', 'kmod/gate/function.h', r'FLEXMEM_TIMEOUTS (\d+)'),
    ('decisions.rst', r'scrubs of at most (\d+ GiB), READ and WRITE of at most (\d+ KiB), COPY of at most (\d+ MiB)',
     'kmod/include/flexmem/device_ops.h', r'SCRUB_MAX \(\(u64\)(SZ_\w+)\)\s.*?RW_MAX (SZ_\w+)\s.*?COPY_MAX \(\(u64\)(SZ_\w+)\)'),
    ('decisions.rst', r'first (\d+) levels', 'kmod/settings.h', r'FLEXMEM_MAX_DEPTH (\d+)'),
    ('decisions.rst', r'ancestor at level (\d+)', 'kmod/settings.h', r'FLEXMEM_MAX_DEPTH (\d+)'),
    ('decisions.rst', r'slots are 2\^(\d+) bytes apart', 'kmod/region/table.h', r'FLEXMEM_MIN_MAP_SHIFT (\d+)'),
    ('decisions.rst', r'offsets of (\d+) slots stay', 'kmod/gate/function.h', r'FLEXMEM_MAX_SLOTS (\d+)'),
    ('decisions.rst', r'at most (\d+) smaller ones', 'kmod/block/block.h', r'FLEXMEM_FIT_TRIES (\d+)'),
    ('decisions.rst', r'more than (\d+) blocks, they check it after one in (\d+) changes', 'kmod/region/region.c',
     r'nr_used > (\d+) && [^;]*?sequence % (\d+)'),
    ('decisions.rst', r'at most (\d+) PFs and (\d+) VFs', 'kmod/chardev.h',
     r'FLEXMEM_MAX_PFS (\d+)\s.*?FLEXMEM_MAX_VFS (\d+)'),
    ('decisions.rst', r'VFs\*\*, and (\d+) slots for each', 'kmod/gate/function.h', r'FLEXMEM_MAX_SLOTS (\d+)'),
    ('tasks/own-driver.rst', r'table of (\d+) slots', 'Documentation/examples/ram.c', r'RAM_PIECES (\d+)'),
)


def figure(text):
    """Returns the number that a page or a source states: 1,000; 16 MiB; SZ_16M; three thousand."""
    size = re.fullmatch(r'(?:SZ_)?(\d+)\s*([KMG])(?:iB)?', text)
    if size:
        return int(size[1]) * UNITS[size[2]]
    product = 1
    for word in text.lower().split():
        product *= WORDS[word] if word in WORDS else int(word.replace(',', ''))
    return product


def find(pattern, text):
    """Returns the figures of the first match; a line may end anywhere in it."""
    found = re.search(pattern, text) or re.search(pattern, ' '.join(text.split()))
    return found and tuple(figure(group) for group in found.groups())


def differences(read, read_source):
    """Returns a text for each row whose figures differ or are missing. The arguments are functions that return the text
    of a file."""
    for page, shown, path, told, *computed in FIGURES:
        here, there = find(shown, read(f'Documentation/{page}')), find(told, read_source(path))
        if not here or not there:
            yield f'{page}: {shown}: is in {page if here else path if there else "none"} only'
            continue
        if computed:
            there = computed[0](*there)
            there = there if isinstance(there, tuple) else (there,)
        if here != there:
            yield f'{page}: {shown}: {here}, but in {path} {there}'
