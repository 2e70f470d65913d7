import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Page, Request } from 'playwright-core'
import * as act from './support/actions.ts'
import { violations } from './support/axe.ts'
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
    await byId(page, 'orders')
      .getByRole('button', { name: /^Cancel BTC/ })
      .click({ timeout: PATIENCE_MS })
    await toast(page, 'Order cancelled')
    await page.getByText('No open order.').waitFor({ timeout: PATIENCE_MS })
    await page.getByRole('tab', { name: 'Positions' }).click()
  })

  it('when the rest of an immediate-or-cancel order is cancelled, a message and the order history give the reason', async () => {
    await limit('60000', '0.01')
    await page.getByLabel('IOC').check()
    await byId(page, 'place').click({ timeout: PATIENCE_MS })
    await toast(page, 'rest of an order for one batch')
    await page.getByRole('tab', { name: 'Order history' }).click()
    await byId(page, 'order-history')
      .locator('tbody tr')
      .first()
      .filter({ hasText: 'limit, IOC' })
      .filter({ hasText: 'rest of an order for one batch' })
      .waitFor({ timeout: PATIENCE_MS })
    await page.getByLabel('IOC').uncheck()
  })

  it('when an order is moved by keyboard and on the chart, each is one replacement, and post only stays', async () => {
    const replaced: string[] = []
    page.on('request', (request) => {
      if (request.method() === 'POST' && /\/v0\/orders(\/(replace|cancel.*))?$/.test(request.url()))
        replaced.push(new URL(request.url()).pathname)
    })
    const last = Number((await byId(page, 'last-price').textContent())?.replaceAll(',', ''))
    await limit(String(Math.floor(last - 60)), '0.01')
    await page.getByLabel('Post only').check()
    await byId(page, 'place').click({ timeout: PATIENCE_MS })
    await toast(page, 'Order placed')
    await page.getByRole('tab', { name: /Open orders/ }).click()
    const row = byId(page, 'orders').locator('tbody tr')
    await row.getByRole('button', { name: /^Move/ }).press('Enter')
    const wanted = Math.floor(last - 50)
    await byId(page, 'move-price').fill(String(wanted))
    await page.keyboard.press('Enter')
    await toast(page, 'Order moved')
    await row.filter({ hasText: wanted.toLocaleString('en-US') }).waitFor({ timeout: PATIENCE_MS })
    await act.dragOrderLine(page)
    await row.filter({ hasNotText: wanted.toLocaleString('en-US') }).waitFor({ timeout: PATIENCE_MS })
    expect(await row.textContent()).to.contain('limit, post only')
    expect(replaced).to.deep.equal(['/v0/orders', '/v0/orders/replace', '/v0/orders/replace'])
    await row.getByRole('button', { name: /^Cancel BTC/ }).click()
    await page.getByText('No open order.').waitFor({ timeout: PATIENCE_MS })
    await page.getByLabel('Post only').uncheck()
    await page.getByRole('tab', { name: 'Positions' }).click()
  })

  it('when only the keyboard is used, an order is placed, found and cancelled', async () => {
    await page.locator('header.bar .brand').focus()
    await act.tabTo(page, page.getByRole('button', { name: 'Limit', exact: true }))
    await page.keyboard.press('Enter')
    await act.tabTo(page, byId(page, 'price'))
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type('60000')
    await act.tabTo(page, byId(page, 'size'))
    await page.keyboard.type('0.01')
    await byId(page, 'place').waitFor({ timeout: PATIENCE_MS })
    await page.keyboard.press('Enter')
    await toast(page, 'Order placed')
    await act.tabTo(page, page.getByRole('tab', { name: 'Positions' }))
    await page.keyboard.press('ArrowRight')
    const cancel = byId(page, 'orders')
      .locator('tbody')
      .getByRole('button', { name: /^Cancel BTC/ })
    await cancel.waitFor({ timeout: PATIENCE_MS })
    await act.tabTo(page, cancel)
    await page.keyboard.press('Enter')
    await page.getByText('No open order.').waitFor({ timeout: PATIENCE_MS })
    await page.getByRole('tab', { name: 'Positions' }).click()
  })

  it('when margin is added, the position shows it once it is on the chain', async () => {
    await byId(page, 'margin').click()
    await byId(page, 'margin-amount').fill('50')
    await byId(page, 'margin-send').click()
    await toast(page, 'Add margin: done')
  })

  it('when the leverage is changed, the position has the new one', async () => {
    await byId(page, 'positions').getByRole('button', { name: 'Leverage' }).click()
    await page.getByRole('dialog').getByLabel('Leverage').fill('3')
    await page.getByRole('button', { name: 'Set 3×' }).click()
    await toast(page, 'Change leverage: done')
    await byId(page, 'positions')
      .locator('.badge')
      .filter({ hasText: '3×' })
      .waitFor({ timeout: PATIENCE_MS })
  })

  const orderRows = () => byId(page, 'orders').locator('tbody tr')
  /** The open orders with this text, once as many are shown. */
  const shownOrders = async (text: string, count: number): Promise<void> => {
    await page.getByRole('tab', { name: /Open orders/ }).click()
    const rows = orderRows().filter({ hasText: text })
    while ((await rows.count()) !== count) await page.waitForTimeout(50)
  }

  it('when an order is placed with exits, the three are one command, the exits wait, follow a replacement, and end with it', async () => {
    const sent: string[] = []
    const note = (request: Request): void => {
      if (request.method() === 'POST' && /\/v0\/orders/.test(request.url()))
        sent.push(new URL(request.url()).pathname)
    }
    await limit('60000', '0.01')
    await page.getByLabel('TP / SL').check()
    await page.getByLabel('Take profit').fill('90000')
    await page.getByLabel('Stop loss').fill('30000')
    await byId(page, 'place').waitFor({ timeout: PATIENCE_MS })
    page.on('request', note)
    await byId(page, 'place').click()
    await toast(page, 'Order placed with its exits')
    await shownOrders('waits for its entry', 2)
    await shownOrders('linked with stop loss and take profit', 1)
    const entry = orderRows().filter({ hasText: 'linked with stop loss and take profit' })
    await entry.getByRole('button', { name: /^Move/ }).click()
    await byId(page, 'move-price').fill('60001')
    await page.keyboard.press('Enter')
    await toast(page, 'Order moved')
    await entry.filter({ hasText: '60,001' }).waitFor({ timeout: PATIENCE_MS })
    await shownOrders('waits for its entry', 2)
    await entry.getByRole('button', { name: /^Cancel BTC/ }).click()
    await page.getByText('No open order.').waitFor({ timeout: PATIENCE_MS })
    await toast(page, 'the entry that it belongs to has ended')
    page.off('request', note)
    expect(
      sent.filter((path) => !path.endsWith('/estimate')).map((path) => path.split('/0x')[0]),
    ).to.deep.equal(['/v0/orders/place/batch', '/v0/orders/replace', '/v0/orders/cancel/by-hash'])
    await page.getByRole('tab', { name: 'Positions' }).click()
  })

  async function setExits(takeProfit: string, stopLoss: string): Promise<void> {
    await page.getByRole('tab', { name: 'Positions' }).click()
    await byId(page, 'exits').click()
    await byId(page, 'take-profit').fill(takeProfit)
    await byId(page, 'stop-loss').fill(stopLoss)
    await byId(page, 'exits-send').click()
  }

  it('when take profit and stop loss of a position are set, moved, removed and set again, they stay one linked pair', async () => {
    await setExits('90000', '30000')
    await toast(page, 'Take profit and stop loss are set')
    await shownOrders('linked with', 2)
    await setExits('91000', '30000')
    await toast(page, 'The exit is moved')
    await shownOrders('91,000', 1)
    await shownOrders('linked with', 2)
    await setExits('', '30000')
    await toast(page, 'Order cancelled')
    await shownOrders('take profit', 0)
    await shownOrders('stop loss', 1)
    await setExits('92000', '30000')
    await toast(page, 'The exit is set')
    await shownOrders('linked with', 2)
    await page.getByRole('tab', { name: 'Positions' }).click()
  })

  it('when each table is saved, its file has the columns and rows of the account', async () => {
    const columns = {
      Positions: 'entry_price',
      'Open orders': 'status_reason',
      'Order history': 'status_reason',
      Fills: 'fill_id',
      Funding: 'transaction_type',
      Transactions: 'transaction_type',
    }
    for (const [name, column] of Object.entries(columns)) {
      await page.getByRole('tab', { name: new RegExp(`^${name}`) }).click()
      const saved = page.waitForEvent('download', { timeout: PATIENCE_MS })
      await page.getByRole('button', { name: `${name} as CSV` }).click()
      const lines = (await text(await (await saved).createReadStream())).trimEnd().split('\r\n')
      expect(lines[0]?.split(','), name).to.include(column)
      if (name !== 'Funding') expect(lines.length, name).to.be.greaterThan(1)
    }
    await page.getByRole('tab', { name: 'Positions' }).click()
  })

  it('when the screens of a trader are checked by axe, in both themes and with a dialog open, it finds no violation', async () => {
    const found: string[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      for (const name of ['Positions', 'Open orders', 'Order history', 'Fills', 'Transactions']) {
        await page.getByRole('tab', { name: new RegExp(`^${name}`) }).click()
        found.push(...(await violations(page)))
      }
      await page.getByRole('tab', { name: 'Positions' }).click()
      await byId(page, 'margin').click()
      found.push(...(await violations(page)))
      await page.keyboard.press('Escape')
      for (const path of ['/portfolio', '/account', '/trade/BTC-PERP']) {
        await page.goto(`${base()}${path}`)
        await act.untilLive(page)
        await page.locator('h1').first().waitFor({ timeout: PATIENCE_MS })
        found.push(...(await violations(page)))
      }
      await byId(page, 'positions').waitFor({ timeout: PATIENCE_MS })
    }
    expect(found).to.deep.equal([])
  })

  it('when the page is loaded again, account, key and position are still there', async () => {
    await page.reload()
    await byId(page, 'positions').waitFor({ timeout: PATIENCE_MS })
  })

  it('when the position is larger than an order may be, a close says which part stays open', async () => {
    await act.openTrade(page, base())
    await act.buyUntil(page, 0.005)
    const MARKETS = /\/v0\/markets$/
    await page.route(MARKETS, async (route) => {
      const response = await route.fetch()
      const markets = (await response.json()) as readonly object[]
      const smaller = markets.map((each) => ({ ...each, max_order_size_e18_raw: String(4n * 10n ** 15n) }))
      await route.fulfill({ response, json: smaller })
    })
    await act.openTrade(page, base())
    const closing = page.waitForRequest((request) => request.url().endsWith('/v0/positions/close'))
    await byId(page, 'close').click({ timeout: PATIENCE_MS })
    expect((await closing).postDataJSON()).to.include({ quantity_e18_raw: String(4n * 10n ** 15n) })
    await toast(page, 'Closing 0.004 BTC-PERP')
    await byId(page, 'toast')
      .filter({ hasText: /0\.\d+ stays open: one order closes at most 0\.004\./ })
      .waitFor({ timeout: PATIENCE_MS })
    await toast(page, 'Sold 0.004')
    await page.unroute(MARKETS)
    await act.openTrade(page, base())
  })

  it('when the position is closed, its exits end with it', async () => {
    await byId(page, 'close').click({ timeout: PATIENCE_MS })
    await toast(page, 'Sold')
    await page.getByText('No open position.').waitFor({ timeout: PATIENCE_MS })
    await page.getByRole('tab', { name: /Open orders/ }).click()
    await page.getByText('No open order.').waitFor({ timeout: PATIENCE_MS })
  })

  it('when the portfolio is opened, it draws equity and realized profit, by hour and by day', async () => {
    await page.locator('header.bar').getByRole('link', { name: 'Portfolio' }).click()
    const curve = byId(page, 'curve')
    for (const [series, interval] of [
      ['Equity', 'By hour'],
      ['Equity', 'By day'],
      ['Realized profit', 'By day'],
      ['Realized profit', 'By hour'],
    ] as const) {
      await curve.getByRole('button', { name: series }).click()
      await curve.getByRole('button', { name: interval }).click()
      const figure = curve.getByRole('img', { name: new RegExp(`^${series} since .*: [+-]?[\\d.,]+ USDM$`) })
      await figure.waitFor({ timeout: PATIENCE_MS })
      expect(await figure.locator('path').getAttribute('d')).to.match(/^M[\d.]+ [\d.]+L/)
    }
    await page.goBack()
    await page.getByRole('tab', { name: 'Fills' }).waitFor({ timeout: PATIENCE_MS })
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

  it('when an API key is created and replaced, each is shown once, and only the newest one is accepted', async () => {
    const create = async (name: string): Promise<string> => {
      await page.getByRole('button', { name }).click()
      await byId(page, 'created-key').waitFor({ timeout: PATIENCE_MS })
      const key = (await byId(page, 'created-key').textContent()) ?? ''
      await page.getByRole('button', { name: 'I have stored it' }).click()
      expect(await page.content()).not.to.contain(key)
      return key
    }
    const statusOf = async (key: string): Promise<number> =>
      (await fetch(`${base()}/v0/me`, { headers: { authorization: `Key ${key}` } })).status
    const first = await create('Create an API key')
    expect(await statusOf(first)).to.equal(200)
    const second = await create('Replace the API key')
    expect(await statusOf(second)).to.equal(200)
    expect(await statusOf(first)).to.equal(401)
    await page.reload()
    await page.getByRole('button', { name: 'Replace the API key' }).waitFor({ timeout: PATIENCE_MS })
    expect(await byId(page, 'created-key').count()).to.equal(0)
  })

  it('when the chain of the wallet changes, the session ends visibly, and signing in again finds the same key', async () => {
    await byId(page, 'wallet').first().click()
    await wallet.emit(page, 'chainChanged', '0x1')
    await byId(page, 'toast')
      .filter({ hasText: 'The chain of your wallet has changed.' })
      .waitFor({ timeout: PATIENCE_MS })
    await byId(page, 'sign-in').waitFor({ timeout: PATIENCE_MS })
    await act.signIn(page, base())
    await byId(page, 'key-ready').waitFor({ timeout: PATIENCE_MS })
  })

  it('when the session key is revoked, this browser no longer signs with it', async () => {
    await byId(page, 'session-keys').getByRole('button', { name: 'Revoke' }).click()
    expect(await byId(page, 'decoded').textContent()).to.contain('revoke a key of your account')
    await byId(page, 'sign-request').click()
    await byId(page, 'session-keys').getByRole('cell', { name: 'revoked' }).waitFor({ timeout: PATIENCE_MS })
    await byId(page, 'register-key').waitFor({ timeout: PATIENCE_MS })
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
