"""Configuration of Sphinx for the site."""

from pathlib import Path

from vettance import __version__

project = "Vettance"
author = "The Vettance authors"
project_copyright = "The Vettance authors, Apache-2.0"
release = version = __version__
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
master_doc = "index"
language = "en"
nitpicky = True
# Decision records are reached from their index; a test holds that links lead to every page.
suppress_warnings = ["toc.not_included"]

myst_enable_extensions = ["attrs_inline", "deflist"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"Vettance {__version__}"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_use_index = False
html_baseurl = ""
# Both styles of highlighting have the contrast that WCAG 2.2 AA asks for (accessible-pygments).
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b57b0",
        "color-brand-content": "#0b57b0",
        "color-foreground-muted": "#55585c",
        "color-foreground-secondary": "#4c4f54",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8ab8f5",
        "color-brand-content": "#8ab8f5",
        "color-foreground-muted": "#a9adb3",
        "color-foreground-secondary": "#b5b9bf",
    },
}
