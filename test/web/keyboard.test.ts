import { after, before, describe, it } from 'mocha'
import type { Page } from 'playwright-core'
import * as act from './support/actions.ts'
import { openPage, type WatchedPage } from './support/browser.ts'
import { usePageExchange } from './support/exchange.ts'
import { type InjectedWallet, injectWallet } from './support/injected-wallet.ts'

const { byId, PATIENCE_MS, tabTo, toast } = act

describe('web: a new trader who has only a keyboard', function () {
  this.timeout(4 * PATIENCE_MS)
  const exchange = usePageExchange()
  let watched: WatchedPage
  let page: Page
  let wallet: InjectedWallet

  before(async () => {
    watched = await openPage(exchange.browser)
    page = watched.page
    wallet = await injectWallet(watched.context, exchange.stack.file.rpc_url)
  })
  after(async () => {
    await watched?.context.close()
    wallet?.close()
  })

  /** Presses Enter on the element, once it is there. */
  async function enter(target: ReturnType<typeof byId>): Promise<void> {
    await target.waitFor({ timeout: PATIENCE_MS })
    await tabTo(page, target)
    await page.keyboard.press('Enter')
  }

  it('when the account screen is open, the wallet connects and signs in', async () => {
    await page.goto(`${exchange.stack.file.base_url}/account`)
    await enter(byId(page, 'wallet'))
    await enter(byId(page, 'sign-in'))
    await enter(page.getByRole('button', { name: 'Sign in', exact: true }))
    await byId(page, 'account').waitFor({ timeout: PATIENCE_MS })
  })

  it('when the account is empty, the faucet pays, and the funds are deposited', async () => {
    await enter(byId(page, 'faucet'))
    await toast(page, 'The faucet has paid')
    await tabTo(page, byId(page, 'amount'))
    await page.keyboard.type('5000')
    await enter(byId(page, 'deposit'))
    await toast(page, 'Deposited')
  })

  it('when no session key exists, one is decoded, signed and ready', async () => {
    await enter(byId(page, 'register-key'))
    await enter(byId(page, 'sign-request'))
    await byId(page, 'key-ready').waitFor({ timeout: PATIENCE_MS })
  })
})
