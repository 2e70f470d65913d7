import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Page } from 'playwright-core'
import * as act from './support/actions.ts'
import { openPage, type WatchedPage } from './support/browser.ts'
import { usePageExchange } from './support/exchange.ts'
import { type InjectedWallet, injectWallet } from './support/injected-wallet.ts'

const { byId, PATIENCE_MS, toast } = act

describe('web: a trader with a new wallet', function () {
  this.timeout(4 * PATIENCE_MS)
  const exchange = usePageExchange()
  let watched: WatchedPage
  let page: Page
  let wallet: InjectedWallet
  const base = (): string => exchange.stack.file.base_url

  before(async () => {
    watched = await openPage(exchange.browser)
    page = watched.page
    wallet = await injectWallet(watched.context, exchange.stack.file.rpc_url)
  })
  after(async () => {
    await watched?.context.close()
    wallet?.close()
  })

  it('when the wallet signs the text of the identity provider, the page shows its account', async () => {
    await act.signIn(page, base())
    expect(await byId(page, 'account').textContent()).to.contain(wallet.address)
  })

  it('when it takes test funds and deposits, the free balance shows the deposit', async () => {
    await act.fund(page, '5000')
    await byId(page, 'free-balance').filter({ hasText: '5,000.00 USDM' }).waitFor({ timeout: PATIENCE_MS })
  })

  it('when a session key is registered, the page shows what the opaque data does before the wallet signs it', async () => {
    await byId(page, 'register-key').click()
    const decoded = await byId(page, 'decoded').textContent()
    expect(decoded).to.contain('place and cancel orders').and.to.contain('It cannot withdraw')
    await byId(page, 'sign-request').click()
    await byId(page, 'key-ready').waitFor({ timeout: PATIENCE_MS })
  })

  it('when a market order is placed, its fill passes its stages without another question to the wallet', async () => {
    const asked = wallet.confirmed.length
    await act.openTrade(page, base())
    await act.marketOrder(page, 'Buy / long', '0.01')
    await toast(page, 'Bought')
    await byId(page, 'positions').waitFor({ timeout: PATIENCE_MS })
    await page.getByRole('tab', { name: 'Fills' }).click()
    await page.locator('[data-stage=CONFIRMED]').first().waitFor({ timeout: PATIENCE_MS })
    await page.getByRole('tab', { name: 'Positions' }).click()
    expect(wallet.confirmed.length).to.equal(asked)
  })

  async function limit(price: string, size: string): Promise<void> {
    await page.getByRole('button', { name: 'Limit', exact: true }).click()
    await byId(page, 'price').fill(price)
    await byId(page, 'size').fill(size)
  }

  it('when a limit order rests, it is listed and marked, and a cancel removes it', async () => {
    await limit('60000', '0.01')
    await byId(page, 'place').click({ timeout: PATIENCE_MS })
    await toast(page, 'Order placed')
    await page.getByRole('tab', { name: /Open orders/ }).click()
    await byId(page, 'orders').locator('tbody tr').getByRole('button').click({ timeout: PATIENCE_MS })
    await toast(page, 'Order cancelled')
    await page.getByText('No open order.').waitFor({ timeout: PATIENCE_MS })
    await page.getByRole('tab', { name: 'Positions' }).click()
  })

  it('when margin is added, the position shows it once it is on the chain', async () => {
    await byId(page, 'margin').click()
    await byId(page, 'margin-amount').fill('50')
    await byId(page, 'margin-send').click()
    await toast(page, 'Add margin: done')
  })

  it('when take profit and stop loss are set, both wait for their triggers', async () => {
    await byId(page, 'exits').click()
    await byId(page, 'take-profit').fill('90000')
    await byId(page, 'stop-loss').fill('30000')
    await byId(page, 'exits-send').click()
    await toast(page, 'Take profit and stop loss are set')
    await page.getByRole('tab', { name: /Open orders/ }).click()
    await byId(page, 'orders').locator('tbody tr').nth(1).waitFor({ timeout: PATIENCE_MS })
    await page.getByRole('tab', { name: 'Positions' }).click()
  })

  it('when the page is loaded again, account, key and position are still there', async () => {
    await page.reload()
    await byId(page, 'positions').waitFor({ timeout: PATIENCE_MS })
  })

  it('when the api is killed, a banner shows the age of the numbers, and the page recovers by itself', async () => {
    const restarted = exchange.stack.api.restart('SIGKILL')
    await byId(page, 'banner').waitFor({ timeout: PATIENCE_MS })
    await restarted
    await byId(page, 'banner').waitFor({ state: 'detached', timeout: 2 * PATIENCE_MS })
    await act.untilLive(page)
  })

  for (const name of ['keeper', 'indexer', 'engine'] as const)
    it(`when the ${name} is killed behind an order, the order fills and its fill is confirmed`, async () => {
      const before = await confirmedFills()
      await act.marketOrder(page, 'Buy / long', '0.001')
      await exchange.stack[name].restart('SIGKILL')
      await page.getByRole('tab', { name: 'Fills' }).click()
      await page
        .locator('[data-stage=CONFIRMED]')
        .nth(before)
        .waitFor({ timeout: 2 * PATIENCE_MS })
      await page.getByRole('tab', { name: 'Positions' }).click()
      await act.untilLive(page)
    })

  async function confirmedFills(): Promise<number> {
    await page.getByRole('tab', { name: 'Fills' }).click()
    return page.locator('[data-stage=CONFIRMED]').count()
  }

  it('when the position is closed, its exits end with it', async () => {
    await byId(page, 'close').click({ timeout: PATIENCE_MS })
    await toast(page, 'Sold')
    await page.getByText('No open position.').waitFor({ timeout: PATIENCE_MS })
    await page.getByRole('tab', { name: /Open orders/ }).click()
    await page.getByText('No open order.').waitFor({ timeout: PATIENCE_MS })
  })

  it('when the own batch is opened, the own order is marked in it and the proof is green', async () => {
    await page.getByRole('tab', { name: 'Fills' }).click()
    await byId(page, 'fills').locator('a').first().click()
    await page.locator('tr.mine').first().waitFor({ timeout: PATIENCE_MS })
    await act.chooseNode(page, exchange.stack.file.rpc_url)
    await act.proofColour(page, 'green')
  })

  it('when a withdrawal is requested, the bank pays it after its delay', async () => {
    await page.goto(`${base()}/account`)
    await byId(page, 'amount').fill('100')
    await byId(page, 'request-withdrawal').click()
    await toast(page, 'Requested')
    await page.locator('[data-testid=withdraw]:enabled').click({ timeout: 2 * PATIENCE_MS })
    await toast(page, 'is paid')
  })

  it('when the account of the wallet changes, the session ends visibly', async () => {
    await byId(page, 'wallet').first().click()
    await wallet.emit(page, 'accountsChanged', ['0x00000000000000000000000000000000000000aa'])
    await toast(page, 'Signed out')
    await byId(page, 'sign-in').waitFor({ timeout: PATIENCE_MS })
  })

  it('when all of this is done, no error was uncaught and the policy has blocked nothing', () => {
    expect(watched.faults).to.deep.equal([])
  })
})
