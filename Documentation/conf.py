# SPDX-License-Identifier: GPL-2.0
"""Sphinx configuration. `make -C Documentation html` builds; see the Makefile."""
import logging
import os
import re
import sys

here = os.path.dirname(os.path.abspath(__file__))
top = os.path.dirname(here)

# The kernel's Sphinx extension and script turn kernel-doc comments into pages. tests/vm/debug-kernel.sh --source puts
# the kernel's sources there.
linux = os.path.join(top, 'build', 'linux-source')
sys.path.insert(0, os.path.join(linux, 'Documentation', 'sphinx'))
extensions = ['kerneldoc']
kerneldoc_bin = os.path.join(linux, 'scripts', 'kernel-doc')
kerneldoc_srctree = top

# The attribute before the declarations of the library's headers.
c_id_attributes = ['FLEXMEM_API']


def is_no_clash(record):
    """Drops a warning: in C a struct and a function may have the same name, which Sphinx regards as a conflict."""
    text = record.getMessage()
    return not (text.startswith('Duplicate C declaration') and
                re.search('flexmem_cache_(profile|setting|statistics) ', text))


logging.getLogger('sphinx.sphinx.domains.c').addFilter(is_no_clash)

project = 'flexmem'
copyright = 'the flexmem authors'
language = 'en'
primary_domain = 'c'
highlight_language = 'none'
exclude_patterns = ['man', 'examples']

html_theme = 'alabaster'
html_theme_options = {'page_width': '72em', 'body_max_width': '56em'}
html_copy_source = False
html_show_sourcelink = False
smartquotes = False
