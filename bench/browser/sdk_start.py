"""What starting the browser SDK costs the main thread of a page.

    python bench sdk_start --starts 200

The demo shop is open in Chromium; for each start a new object is made with consent and started, which looks
up what it needs and listens. The time is what `performance.now()` says around both calls, which block.
"""

import argparse
import asyncio
import contextlib
import math
import os
import statistics
import tempfile
from pathlib import Path

from playwright.async_api import async_playwright

from vettance.demo.launch import launched
from vettance.demo.shop import open_shop

STARTS = """async count => {
  const took = []
  for (let n = 0; n < count; n++) {
    const began = performance.now()
    const getToken = () => new Promise(() => {})
    const one = Vettance.createVettance({ endpoint: location.origin, consent: true, getToken })
    const started = one.start()
    took.push(performance.now() - began)
    await started
    one.stop()
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  return took }"""


async def measure(shop: str, build: str, arguments: argparse.Namespace) -> list[float]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=arguments.chromium, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        firsts, rest = [], []
        for _ in range(5):
            page = await browser.new_page()
            await page.goto(f"{shop}/?{build}")
            took = await page.evaluate(STARTS, math.ceil(arguments.starts / 5))
            firsts.append(took[0])
            rest += took
            await page.close()
        await browser.close()
    rest.sort()
    median, last = statistics.median(rest), rest[int(len(rest) * 0.99)]
    print(
        f"{build}: first start of a page {statistics.median(firsts):.2f} ms, later median {median:.2f} ms, "
        f"99 of 100 below {last:.2f} ms, load {os.getloadavg()[0]:.1f}"
    )
    return rest


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--starts", type=int, default=200)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        service = stack.enter_context(launched(Path(folder)))
        shop = stack.enter_context(open_shop(service.target))
        for build in ("core", "full"):
            asyncio.run(measure(shop, build, arguments))
