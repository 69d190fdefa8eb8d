#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the commands that README, pages and man pages show, as they are printed.

Usage: blocks.py host|machine [PAGE[:FIRST WORDS]...]      prints TAP; default: all

"machine" runs the commands that need the driver, in a virtual machine where they may load, install and change anything
(tests/vm/docs.sh). BLOCKS says where each block runs, and why some are not run at all.
"""
import glob
import os
import re
import subprocess
import sys

DOCS = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(DOCS)

# A literal block with a line that begins like this is a block of commands.
COMMAND = re.compile(r'(?:[#$] )?(?:[A-Z_]+=\S* )*(?:sudo|make|tests/|build/|cc |cd |cat |echo |openssl|mkdir|gzip|'
                     r'flexmem (?:[a-z]+ |-|[a-z]+$)|unshare )')
DRIVER = 'flexmem.ko; flexmem_sim.ko slots=8'
SPREADS = 'flexmem.ko order=load_balance; flexmem_sim.ko'
NONE = ''

# (page, first words): where the block runs. A text that begins with none of the following words names modules: the
# block runs in the machine after these modules were loaded. 'as above': it runs in the state that the block before has
# left. 'in DIR': it runs in that directory, in the same state. 'host': on the host. 'last: ' and modules: only if the
# block is named as an argument. 'exit 3: ' and modules: each command must end with this status, which the page explains.
# 'no: ' and a reason: nowhere.
BLOCKS = {
    ('README.md', 'make demo'): 'no: what the demo shows runs in tests/vm/docs.sh; make check runs this',
    ('README.md', 'tests/setup.sh'): NONE,
    ('README.md', 'cc userlib'): 'as above',
    ('README.md', 'sudo FLEXMEM_DEBUG=1'): 'as above',
    ('README.md', 'sudo rmmod'): 'as above',
    ('README.md', 'make vm'): DRIVER,
    ('cache.rst', 'make vm CMD=\'cc userlib/examples/cache_grow'): DRIVER,
    ('cache.rst', 'make vm CMD=\'cc userlib/examples/cache_pressure'): DRIVER,
    ('cache.rst', 'flexmem replay'): 'host',
    ('cache.rst', 'make\nexport'): 'host',
    ('driver-guide.rst', 'mkdir'): NONE,
    ('driver-guide.rst', 'make -C tests/selftests'): f'exit 3: {DRIVER}',
    ('gpu.rst', 'tests/setup.sh'): 'no: needs an NVIDIA GPU, and a PyTorch with CUDA',
    ('install.rst', 'tests/setup.sh deb'): 'no: the suite deb runs these commands',
    ('install.rst', 'tests/setup.sh build'): NONE,
    ('install.rst', 'make\nexport'): 'host',
    ('install.rst', 'sudo systemd-sysusers'): DRIVER,
    ('install.rst', 'make modules\nsudo insmod'): NONE,
    ('install.rst', 'make modules\nsudo make'): NONE,
    ('install.rst', 'openssl'): NONE,
    ('install.rst', 'sudo mokutil'): 'no: asks the firmware of a real machine',
    ('install.rst', 'for module'): 'as above',
    ('install.rst', 'sudo rmmod'): f'last: {DRIVER}',
    ('library.rst', 'cc userlib'): DRIVER,
    ('parameters.rst', 'sudo modprobe'): NONE,
    ('placement.rst', 'make vm'): DRIVER,
    ('placement.rst', 'flexmem alloc'): 'as above',
    ('placement.rst', 'flexmem replay'): 'as above',
    ('pytorch.rst', 'make torch'): 'no: the suite torch is this',
    ('pytorch.rst', 'make vm'): 'no: the suite torch-driver runs scripts like this one, in make check-long',
    ('pytorch.rst', 'FLEXMEM_TORCH=host:1024'): 'no: the suite torch runs the program, in test_devices.py',
    ('python.rst', 'tests/setup.sh'): 'host',
    ('python.rst', 'make vm'): DRIVER,
    ('simulator.rst', 'sudo modprobe'): NONE,
    ('simulator.rst', 'cd /sys/bus'): DRIVER,
    ('simulator.rst', 'cd /sys/kernel'): DRIVER,
    ('simulator.rst', 'echo 50000'): 'in /sys/kernel/debug/flexmem_sim',
    ('simulator.rst', 'cat vf0'): 'in /sys/kernel/debug/flexmem_sim',
    ('testing.rst', 'tests/native/run.sh'): 'no: the suite native is this',
    ('testing.rst', 'build/tests/native'): 'no: the suite native is this',
    ('testing.rst', "tests/native/mutants.py 'flexmem_slots"): 'no: the suite mutants is this',
    ('testing.rst', 'tests/native/mutants.py -l'): 'no: the suite library is this',
    ('testing.rst', 'tests/native/callers.py'): 'no: the suite native runs it',
    ('testing.rst', 'tests/native/volume.sh'): 'no: the suites volume-asan and volume-tsan are these',
    ('testing.rst', 'make -C tests/selftests'): 'no: the suite selftests-6.12 is this',
    ('testing.rst', 'make vm KERNEL=6.12'): DRIVER,
    ('testing.rst', 'tests/vm/run.sh'): 'no: the suite kunit is this',
    ('testing.rst', 'FLEXMEM_SEED=7'): 'no: the suite torture is this',
    ('testing.rst', 'make -C tests/userlib'): 'no: the suites library and cache are these',
    ('testing.rst', 'make vm CMD='): DRIVER,
    ('tracing.rst', 'echo 1'): 'no: the last command does not end; tests/selftests/trace.c does the same',
    ('tracing.rst', 'tests/vm/run.sh'): 'no: the suite selftests-6.12 runs this test',
    ('tasks/limits.rst', 'sudo flexmem limit --cgroup user.slice/user-1000.slice --bytes 8G'): DRIVER,
    ('tasks/limits.rst', 'sudo flexmem limit --cgroup user.slice/user-1001.slice --all --bytes 4G'): 'as above',
    ('tasks/limits.rst', 'sudo flexmem limit --default --bytes 16G'): 'as above',
    ('tasks/limits.rst', 'sudo flexmem owners'): 'as above',
    ('tasks/limits.rst', 'flexmem limit'): 'as above',
    ('tasks/limits.rst', 'sudo flexmem limit --cgroup user.slice/user-1000.slice --bytes none'): 'as above',
    ('tasks/limits.rst', 'sudo systemctl'): 'no: the machine runs no systemd',
    ('tasks/metrics.rst', 'sudo flexmem export'): DRIVER,
    ('tasks/metrics.rst', 'sudo systemctl'): 'no: the machine runs no systemd',
    ('tasks/containers.rst', 'sudo flexmem cdi'): 'no: needs a container engine and an image',
    ('tasks/containers.rst', 'sudo docker'): 'no: needs a container engine and an image',
    ('tasks/containers.rst', '$ unshare'): DRIVER,
    ('tasks/night.rst', 'sudo flexmem doctor'): 'no: fails if anything is wrong with the machine; tests/vm/operate.sh runs it',
    ('tasks/night.rst', 'sudo flexmem owners'): DRIVER,
    ('tasks/night.rst', 'cat /proc'): 'no: the number of a process differs each time',
    ('tasks/share.rst', 'flexmem list'): DRIVER,
    ('tasks/share.rst', 'sudo flexmem cdi --share train'): 'no: needs a container engine and an image',
    ('tasks/share.rst', 'sudo flexmem release'): 'no: needs the container; tests/vm/operate.sh runs these commands',
    ('tasks/share.rst', 'sudo flexmem cdi --share claim1'): 'no: needs a device on PCI; tests/vm/operate.sh runs this command',
    ('tasks/own-back-end.rst', 'make\nexport'): 'host',
    ('tasks/own-driver.rst', 'tests/setup.sh build vm'): 'host',
    ('tasks/own-driver.rst', 'make vm'): 'flexmem.ko fallback_sizes=16M; flexmem_sim.ko',
    ('tasks/sr-iov.rst', '$ echo 4'): 'no: needs a card with SR-IOV',
    ('tasks/sr-iov.rst', '$ vf='): 'no: needs a card with SR-IOV',
    ('tasks/out-of-memory.rst', '$ flexmem alloc'): DRIVER,
    ('tasks/out-of-memory.rst', 'sudo flexmem owners'): 'as above',
    ('tasks/out-of-memory.rst', 'flexmem regions'): 'as above',
    ('tasks/out-of-memory.rst', 'flexmem stats'): 'as above',
    ('tasks/programs.rst', 'make vm'): 'flexmem.ko program_slots=1; flexmem_sim.ko',
    ('tasks/regions.rst', '$ flexmem alloc'): SPREADS,
    ('tasks/replay.rst', 'mkdir -p build\nprintf \'%s\\n\' \'#'): 'host',
    ('tasks/replay.rst', 'mkdir -p build\ncc'): 'host',
    ('tasks/replay.rst', 'mkdir -p build\nflexmem map'): 'host',
    ('tasks/replay.rst', 'mkdir -p build\nprintf \'%s\\n\' arrival'): 'host',
    ('tasks/replay.rst', 'flexmem replay --cache'): 'host',
    ('tasks/replay.rst', 'flexmem map'): 'host',
    ('tasks/replay.rst', 'flexmem replay --show-peak'): DRIVER,
    ('tasks/replay.rst', 'flexmem replay --json'): 'as above',
    ('tasks/watch.rst', 'FLEXMEM_DEBUG=1'): DRIVER,
    ('tasks/watch.rst', 'flexmem info'): 'as above',
    ('tasks/watch.rst', 'flexmem watch'): 'as above',
    ('tasks/watch.rst', 'mkdir -p build\nsudo flexmem map'): 'as above',
    ('tasks/watch.rst', 'sudo flexmem top'): 'no: does not end, and needs a terminal; tests/userlib/test_tool_top.py drives it',
    ('uapi.rst', 'cc'): DRIVER,
    ('flexmem.1', '$ make modules'): NONE,
    ('flexmem.1', '$ cd'): DRIVER,
    ('flexmem.1', '$ flexmem shell'): DRIVER,
    ('flexmem.1', '# flexmem limit'): DRIVER,
    ('flexmem.1', '$ flexmem alloc'): DRIVER,
}


def indented(text, opens):
    """Returns the indented blocks after lines that open one, as texts without their indentation."""
    lines = text.split('\n')
    at = 1
    while at < len(lines):
        if not (lines[at].startswith((' ', '\t')) and not lines[at - 1].strip() and opens(lines, at)):
            at += 1
            continue
        width = len(lines[at]) - len(lines[at].lstrip())
        block = []
        while at < len(lines) and (not lines[at].strip() or
                                   len(lines[at]) - len(lines[at].lstrip()) >= width):
            block.append(lines[at][width:])
            at += 1
        yield '\n'.join(block).strip('\n')


def blocks_of(page):
    with open(os.path.join(TOP, page), encoding='utf-8') as file:
        text = file.read()
    if page.endswith('.md'):
        found = re.split(r'^```.*$', text, flags=re.MULTILINE)[::2]
        for part in found:
            # In running text, something in backquotes counts if it is a command by itself.
            for match in re.finditer(r'^((?: {4}.*\n|\n(?= {4}))+)|`([^`\n]+)`', part, re.MULTILINE):
                yield re.sub(r'^ {4}', '', match[1], flags=re.MULTILINE).strip('\n') if match[1] else match[2]
    elif page.endswith('.rst'):
        yield from indented(text, lambda lines, at: at >= 2 and lines[at - 2].rstrip().endswith('::') and
                            not lines[at - 2].lstrip().startswith('.. '))
    else:
        text = text.replace('\\-', '-')
        for match in re.finditer(r'^\.Bd -literal.*\n((?:.*\n)*?)\.Ed$|^\.Dl (.*)$', text, re.MULTILINE):
            yield (match[1] or match[2]).strip('\n')


def all_blocks():
    """Returns (page, block, where) for each block of commands; where is None if the block is not listed."""
    # The blocks of these two pages install what the blocks of other pages use.
    pages = ['README.md', 'Documentation/install.rst']
    pages += sorted(set(glob.glob('Documentation/*.rst', root_dir=TOP) +
                        glob.glob('Documentation/tasks/*.rst', root_dir=TOP) +
                        glob.glob('Documentation/man/*.[1-9]', root_dir=TOP)) - set(pages))
    for page in pages:
        name = re.sub(r'^Documentation/(man/)?', '', page)
        for block in blocks_of(page):
            if not any(COMMAND.match(line) for line in block.split('\n')) and not block.startswith('for '):
                continue
            if page == 'README.md' and '\n' not in block and block.count(' ') < 2:
                continue
            keys = [key for key in BLOCKS if key[0] == name and block.startswith(key[1])]
            key = max(keys, key=lambda found: len(found[1]), default=None)
            yield page, block, key


def session(block):
    """Returns [(command, its expected output or None)] of a block."""
    if not re.match(r'[#$] ', block):
        return [(block, None)]
    parts = re.split(r'^[#$] ', block, flags=re.MULTILINE)[1:]
    steps = [part.partition('\n')[::2] for part in parts]
    if not any(output for _, output in steps):
        return [('\n'.join(command for command, _ in steps), None)]
    return [(command, output.strip('\n')) for command, output in steps]


def run_block(block, env, directory, status=0):
    """Runs a block in the checkout. Returns a text about what went wrong, or None. A command that prints an error must
    fail. Each other command must end with the exit status @status."""
    for command, expected in session(block):
        typed = None
        if expected and 'flexmem> ' in expected:
            typed = ''.join(line[9:] + '\n' for line in expected.split('\n') if line.startswith('flexmem> '))
            expected = '\n'.join(line for line in expected.split('\n') if not line.startswith('flexmem> '))
        fails = bool(expected) and expected.startswith('flexmem: ')
        options = ['-eu'] if expected else ['-euo', 'pipefail']
        done = subprocess.run(['bash', *options, '-c', command], cwd=directory, env=env, text=True,
                              input=typed or '', stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if not done.returncode if fails else done.returncode != status:
            return f'{command}\nexit status {done.returncode}\n{done.stdout[-3000:]}'
        if expected is not None and done.stdout.strip('\n') != expected:
            return f'{command}\nprints\n{done.stdout}not\n{expected}'
    return None


def load(modules, directory):
    """Unloads our modules and loads the given ones, "MODULE PARAMETERS; ..."."""
    with open('/proc/modules', encoding='ascii') as file:
        loaded = [line.split()[0] for line in file]
    for module in ('flexmem_sim', 'flexmem'):
        if module in loaded:
            subprocess.run(['rmmod', module], check=True)
    for module in filter(None, modules.split('; ')):
        name, *parameters = module.split(' ')
        subprocess.run(['insmod', os.path.join(directory, name), *parameters], check=True)


def main(machine, pages):
    env = dict(os.environ)
    # On the host flexmem is not installed, so the command in the build folder is used.
    if not machine:
        env['PATH'] = os.path.join(TOP, 'build', 'userlib') + ':' + env['PATH']
    # The blocks do not get the variables of the make that runs this script.
    for name in [name for name in env if name.startswith('MAKE') or name == 'MFLAGS']:
        del env[name]
    if not machine:
        subprocess.run(['make', '-s'], cwd=TOP, env=env, stdout=subprocess.DEVNULL, check=True)
    count = failed = nowhere = 0
    print('TAP version 13')
    for page, block, key in all_blocks():
        first = block.split('\n')[0][:60]
        where = BLOCKS.get(key)
        problem = None
        if pages and not any(page.endswith(wanted) and block.startswith(words)
                             for wanted, _, words in (one.partition(':') for one in pages)):
            continue
        if where is None:
            problem = 'not listed in Documentation/blocks.py' if not machine else None
        elif where.startswith('no: '):
            nowhere += 1
            continue
        elif (where == 'host') == machine or (where.startswith('last: ') and not pages):
            continue
        else:
            try:
                directory = where[3:] if where.startswith('in ') else TOP
                status, modules = re.fullmatch(r'(?:exit (\d+): |last: )?(.*)', where).groups()
                if machine and where != 'as above' and directory == TOP:
                    load(modules, env['FLEXMEM_KO'])
                problem = run_block(block, env, directory, int(status or 0))
            except (OSError, subprocess.CalledProcessError) as error:
                problem = str(error)
        if where is None and machine:
            continue
        count += 1
        failed += bool(problem)
        print(f'{"not ok" if problem else "ok"} {count} - {page}: {first.replace("#", "-")}', flush=True)
        for line in (problem or '').split('\n')[:60]:
            if line:
                print(f'# {line}')
    if not machine and not pages:
        found = {key for _, _, key in all_blocks()}
        for key in sorted(set(BLOCKS) - found):
            count += 1
            failed += 1
            print(f'not ok {count} - {key[0]}: {key[1]}: no such block'.replace('\n', ' '))
    print(f'# {nowhere} more run nowhere; BLOCKS in Documentation/blocks.py says why')
    print(f'1..{count}')
    return 1 if failed else 0


if __name__ == '__main__':
    if sys.argv[1:2] not in (['host'], ['machine']):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1] == 'machine', sys.argv[2:]))
