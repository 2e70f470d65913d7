import { before, describe, it } from 'mocha'
import type { Page } from 'playwright-core'
import * as act from './support/actions.ts'
import { openPage } from './support/browser.ts'
import { usePageExchange } from './support/exchange.ts'
import { injectWallet } from './support/injected-wallet.ts'

const { byId, PATIENCE_MS } = act

/** Long enough for some candles and batches. */
const HISTORY_MS = 60_000

describe('web: pictures for the README (skipped: npm run screenshots takes them)', function () {
  this.timeout(4 * PATIENCE_MS + HISTORY_MS)
  before(function () {
    if (process.env.SCREENSHOTS === undefined) this.skip()
  })
  const exchange = usePageExchange()
  const base = (): string => exchange.stack.file.base_url
  const save = async (page: Page, name: string): Promise<void> => {
    await page.screenshot({ path: `docs/page-${name}.png` })
  }

  it('when a trader has a position and orders, the trade screen and an own batch are pictured', async () => {
    const { page, context } = await openPage(exchange.browser)
    const wallet = await injectWallet(context, exchange.stack.file.rpc_url)
    await act.signIn(page, base())
    await act.fund(page, '5000')
    await act.registerKey(page)
    await act.openTrade(page, base())
    await page.waitForTimeout(HISTORY_MS)
    await act.marketOrder(page, 'Buy / long', '0.05')
    await act.toast(page, 'Bought')
    const last = Number((await byId(page, 'last-price').textContent())?.replaceAll(',', ''))
    await page.getByRole('button', { name: 'Limit', exact: true }).click()
    await byId(page, 'price').fill(String(Math.floor(last - 40)))
    await byId(page, 'size').fill('0.02')
    await page.getByLabel('Post only').check()
    await byId(page, 'place').click({ timeout: PATIENCE_MS })
    await act.toast(page, 'Order placed')
    await byId(page, 'size').fill('0.02')
    await byId(page, 'place').waitFor({ timeout: PATIENCE_MS })
    await byId(page, 'toast').first().waitFor({ state: 'detached', timeout: PATIENCE_MS })
    await save(page, 'trade')
    await page.getByRole('tab', { name: 'Fills' }).click()
    await byId(page, 'fills').locator('a').first().click()
    await act.chooseNode(page, exchange.stack.file.rpc_url)
    await act.proofColour(page, 'green')
    await page.locator('.curves svg').waitFor({ timeout: PATIENCE_MS })
    await save(page, 'batch')
    await context.close()
    wallet.close()
  })

  it('when the screen is a phone, the order book is pictured in the light theme', async () => {
    const { page, context } = await openPage(exchange.browser, { theme: 'light', phone: true })
    await act.openTrade(page, base())
    await act.openSheet(page, 'Book')
    await byId(page, 'book').locator('.bids .level').first().waitFor({ timeout: PATIENCE_MS })
    await save(page, 'phone')
    await context.close()
  })
})
