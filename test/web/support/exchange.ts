/** One running exchange and one browser for all tests of the page: the first test that needs them starts them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { type Stack, startStack } from '../../../stack/stack.ts'
import { chromiumPath, launch } from './browser.ts'

export interface PageExchange {
  readonly stack: Stack
  readonly browser: Browser
}

const LIMIT_MS = 300_000

let running: Promise<PageExchange> | null = null
let users = 0
let dataDir = ''

/** Opens the operator's view of the exchange. */
export const OPERATOR_PASSWORD = 'the password of the page tests'

async function start(): Promise<PageExchange> {
  process.env.QUEUE_PAGE_PASSWORD = OPERATOR_PASSWORD
  dataDir = mkdtempSync(join(tmpdir(), 'clearbatch-web-'))
  const stack = await startStack(
    { port: 0, dataDir, fresh: false, bots: true, page: true, standby: true },
    () => {},
  )
  return { stack, browser: await launch() }
}

/** In a `describe`: its tests are skipped where Chromium is missing. The last group that ends stops everything. */
export function usePageExchange(): PageExchange {
  users += 1
  let current: PageExchange | null = null
  before(async function () {
    this.timeout(LIMIT_MS)
    if (process.env.PAGE_TESTS === undefined) {
      console.log('      skipped: `npm run test:page` opens the page in Chromium')
      return this.skip()
    }
    if (chromiumPath === null) {
      console.log('      skipped: no Chromium on this machine; set CHROMIUM to its path')
      return this.skip()
    }
    running ??= start()
    current = await running
  })
  after(async function () {
    this.timeout(LIMIT_MS)
    users -= 1
    if (users > 0 || running === null) return
    const { stack, browser } = await running
    await browser.close()
    await stack.stop()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const started = (): PageExchange => {
    if (current === null) throw new Error('the exchange runs from before() to after()')
    return current
  }
  return {
    get stack() {
      return started().stack
    },
    get browser() {
      return started().browser
    },
  }
}
