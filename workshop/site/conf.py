"""The course as a web site: `make site`. Nothing on it comes from elsewhere, so it works offline.

Sphinx reads the repository itself; pages.py says what is a page, and fits notebooks to a page without
a kernel.
"""

import os
import sys
from pathlib import Path

import jupyter_server_mathjax

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import editions  # noqa: E402
import pages  # noqa: E402

from tutorial_lib.language import ENGLISH, _  # noqa: E402
from workshop import documents  # noqa: E402

project = _("How Transformers know order")
language = editions.setting(editions.LANGUAGE)
extensions = [
    "myst_nb",
    "sphinx_copybutton",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "pages",
    "editions",
    "around",
    "machines",
    "light",
]
include_patterns = [
    "docs/*.md",
    "docs/instructor/*.md",
    "workshop/site/index.md",
    "workshop/site/api.rst",
    "workshop/site/methods.md",
    "notebooks/*.ipynb",
    "notebooks/deeper/*.ipynb",
    "exercises/*/*.ipynb",
]
# .venv alone has thousands of folders.
exclude_patterns = [".*", "build", "**/.ipynb_checkpoints", "docs/README.*.md"]
if editions.LANGUAGE != ENGLISH:  # all lessons, and what else is translated
    include_patterns = [
        "notebooks/*.ipynb",
        "notebooks/deeper/*.ipynb",
        "exercises/*/*.ipynb",
        *(
            str(documents.paths()[name].relative_to(pages.ROOT))
            for name in {*editions.documents_of(editions.LANGUAGE).values()}
        ),
    ]
if pages.STUDENTS:  # make site STUDENTS=1: without the guide for teachers, its key, answers to the checks
    exclude_patterns.append("docs/instructor/*")

# ---- notebooks and markdown ----
nb_execution_mode = "off"  # the outputs are stored
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 6
myst_heading_slug_func = "workshop.documents.slug"
suppress_warnings = ["myst.header"]  # a notebook's goals stand below its title as a heading of level 3
myst_update_mathjax = False  # it knows MathJax 3 and later
copybutton_selector = "div:not(.output) > div.highlight > pre"  # what a cell printed is not to be run
copybutton_exclude = ".linenos, .gp, .go"

if editions.LANGUAGE != ENGLISH:
    nb_code_prompt_show, nb_code_prompt_hide = _("Show the code"), _("Hide the code")

# ---- formulas: the MathJax 2.7 that Jupyter's packages bring ----
mathjax_path = "MathJax.js?config=TeX-AMS-MML_HTMLorMML-full"
if editions.LANGUAGE != ENGLISH:  # only the English site holds it
    mathjax_path = f"../../_static/{mathjax_path}"
mathjax2_config = {
    "messageStyle": "none",
    "showMathMenu": False,
    "tex2jax": {"inlineMath": [["\\(", "\\)"]], "processClass": "math", "ignoreClass": "tex2jax_ignore"},
    "TeX": {"Macros": {"qquad": "\\mmlToken{mspace}[width='2em' linebreak='goodbreak']{}"}},
    "HTML-CSS": {
        "availableFonts": [],
        "preferredFont": None,
        "webFont": "STIX-Web",
        "imageFont": None,
        "undefinedFamily": "STIXGeneral, 'Arial Unicode MS', 'Course Chinese', serif",  # words in Chinese
        "scale": 92,
        "linebreaks": {"automatic": True, "width": "container"},  # on a phone, between formulas at first
        # its font for comparison would be fetched from about:blank, which browsers refuse, loudly
        "styles": {"@font-face": {"font-family": "MathJax_Blank", "src": "local('MathJax_Blank')"}},
    },
}

# ---- the library ----
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "show-inheritance": True,
    "exclude-members": "extra_repr",
}
add_module_names = False
toc_object_entries_show_parents = "hide"
autosummary_generate = False
default_role = "code"
napoleon_numpy_docstring = False

# ---- looks ----
html_theme = "sphinx_book_theme"
html_title = project
html_favicon = "static/favicon.svg"
html_logo = "static/favicon.svg"
html_static_path = ["static"]
if editions.LANGUAGE == ENGLISH:
    html_static_path += [
        "../../docs/course.gif",
        str(Path(jupyter_server_mathjax.__file__).parent / "static"),
    ]
templates_path = ["templates"]
html_css_files = ["course.css"]
html_js_files = [("read.js", {"defer": "defer"})]
own = documents.ROOT / "workshop" / "locale" / editions.LANGUAGE / "site.css"  # what its script asks for
if own.is_file():
    html_static_path.append(str(own))
    html_css_files.append(own.name)
html_search_scorer = str(HERE / "scorer.js")
html_baseurl = os.environ.get("SITE_URL", "")  # make site SITE_URL=https://…/: a map, a 404 page
if html_baseurl and editions.LANGUAGE != ENGLISH:
    html_baseurl += f"{editions.LANGUAGE}/"
html_show_copyright = False
html_use_index = html_domain_indices = False  # the search finds names, too
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is, until a button says more
# a listing leads back to its page; all pages beside each of 120 listings took a fifth of the time
html_sidebars = {"_modules/**": ["navbar-logo.html"], "index": []}  # the first page is itself a list of all
html_theme_options = {
    "logo": {"text": project},
    "navbar_persistent": [],
    "article_header_start": ["toggle-primary-sidebar.html", "crumbs.html"],
    "article_header_end": ["language.html", "article-header-buttons.html"],
    "max_navbar_depth": 1,  # the button that opens a deeper level has no name for a screen reader
    "collapse_navbar": True,  # at a depth of 1 nothing else is seen, and less is made
    "show_toc_level": 2,
    "use_fullscreen_button": False,
    "footer_content_items": "",  # pages name no author, and none is asked for
    "use_download_button": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "github-dark",
}
