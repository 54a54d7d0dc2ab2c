"""QR codes as one path of an SVG, dark on light in both themes, as cameras expect them."""

from typing import Final

from markupsafe import Markup

#: Light squares around the code (ISO/IEC 18004 asks for four).
_BORDER: Final = 4


def qr_picture(text: str) -> Markup:
    """Return the QR code of a text."""
    import segno

    rows = list(segno.make(text, error="m", micro=False).matrix_iter(border=_BORDER))
    dark = "".join(
        f"M{column} {row}h1v1h-1z"
        for row, cells in enumerate(rows)
        for column, cell in enumerate(cells)
        if cell
    )
    return Markup(
        '<svg class="qr" viewBox="0 0 {size} {size}" role="img" aria-label="QR code for the app">'
        '<rect width="{size}" height="{size}" fill="#fff"/><path fill="#000" d="{dark}"/></svg>'
    ).format(size=len(rows), dark=dark)
