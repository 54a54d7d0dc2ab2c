// Which device this is, and whether a program drives it. Only a hash of the device's traits leaves the browser.
import { hashComponents, loadSources, prepareForSources, sources } from '@fingerprintjs/fingerprintjs'
import type { Signals } from './types'

// `fontPreferences` writes markup into a frame, which pages with Trusted Types forbid; `domBlockers` adds
// elements that content blockers notice. The rest tells devices apart well enough. The entry that loads the
// whole library, and with it the request that counts its installations, is not part of the build.
const { fontPreferences: _markup, domBlockers: _blockers, ...traits } = sources as Record<string, unknown>

const flag = (test: () => unknown): boolean => {
  try {
    return !!test()
  } catch {
    return false
  }
}

/** Things that drivers leave in a page. Each alone can be hidden; together they find those who do not hide. */
const hints = (): Signals => {
  const agent = navigator.userAgent
  const mobile = /Mobi|Android/.test(agent)
  return {
    webdriver: flag(() => navigator.webdriver),
    headless:
      /Headless/.test(agent) ||
      flag(() => (navigator as any).userAgentData?.brands.some((each: any) => /Headless/.test(each.brand))) ||
      flag(() => !mobile && window.outerWidth === 0 && window.outerHeight === 0),
    tampered: flag(() => {
      const own = Object.getOwnPropertyNames(navigator)
      // Browsers define these on the prototype; an own property was put there to lie.
      return own.some((name) => /^(webdriver|plugins|languages|platform|userAgent|hardwareConcurrency)$/.test(name))
    }),
    automationGlobals: flag(() =>
      ['__playwright__binding__', '__pwInitScripts', '_phantom', 'callPhantom', '__nightmare', 'domAutomation'].some(
        (name) => name in window,
      ) || Object.keys(document).some((name) => /^\$?cdc_|^__(webdriver|selenium|driver)/.test(name)),
    ),
  }
}

export const device = async (): Promise<Signals> => {
  const found = hints()
  try {
    await prepareForSources(50)
    const components = await (loadSources as any)(traits, { cache: {}, debug: false }, [], 50)()
    return { ...found, fingerprint: hashComponents(components as never) }
  } catch {
    return found
  }
}
