/** Chromium for the tests of the page. Where it is missing they are skipped with a reason. */
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

const CANDIDATES = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

export const chromiumPath: string | null =
  CANDIDATES.find((path) => path !== undefined && existsSync(path)) ?? null

export const launch = (args: readonly string[] = []): Promise<Browser> => {
  if (chromiumPath === null) throw new Error('there is no Chromium: set CHROMIUM to its path')
  return chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox', ...args] })
}

export interface PageOptions {
  readonly theme?: 'dark' | 'light'
  readonly phone?: boolean
  /** The pair of colours for gains and losses. */
  readonly colours?: 'standard' | 'colour-blind'
}

/** `faults`: uncaught errors, and everything that the policy has blocked. */
export interface WatchedPage {
  readonly page: Page
  readonly context: BrowserContext
  readonly faults: readonly string[]
}

export async function openPage(
  browser: Browser,
  { theme = 'dark', phone = false, colours = 'standard' }: PageOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({
    viewport: phone ? { width: 390, height: 844 } : { width: 1440, height: 900 },
    colorScheme: theme,
    hasTouch: phone,
    reducedMotion: 'reduce',
  })
  if (colours !== 'standard')
    await context.addInitScript(
      `localStorage.setItem('clearbatch.settings', '${JSON.stringify({ colours })}')`,
    )
  const page = await context.newPage()
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.message}`))
  page.on('console', (message) => {
    const text = message.text()
    if (message.type() === 'error' && /Content Security Policy|Refused to/.test(text)) faults.push(text)
  })
  return { page, context, faults }
}
