import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Page } from 'playwright-core'
import type { Position } from '../../client/responses.ts'
import { ORDER_TYPES } from '../../domain/orders/order.ts'
import * as act from './support/actions.ts'
import { openPage, type WatchedPage } from './support/browser.ts'
import { usePageExchange } from './support/exchange.ts'
import { type FeedTap, tapFeed } from './support/feed-tap.ts'
import { type InjectedWallet, injectWallet } from './support/injected-wallet.ts'

const { byId, PATIENCE_MS, toast } = act
const E18 = 10n ** 18n

/** As the ticket and the tables name them. */
const WORDS: Readonly<Record<(typeof ORDER_TYPES)[number], string>> = {
  MARKET: 'market',
  LIMIT: 'limit',
  STOP_MARKET: 'stop market',
  STOP_LIMIT: 'stop limit',
  TAKE_PROFIT_MARKET: 'take profit',
  TAKE_PROFIT_LIMIT: 'take profit limit',
  STOP_LOSS_MARKET: 'stop loss',
  STOP_LOSS_LIMIT: 'stop loss limit',
}

/** Runs in the page: counts notifications and tones, as a browser that allows both. */
const COUNT_SIGNALS = `(() => {
  window.notes = []
  window.tones = 0
  window.Notification = class {
    static permission = 'granted'
    static requestPermission = async () => 'granted'
    constructor(title) { window.notes.push(title) }
  }
  const create = AudioContext.prototype.createOscillator
  AudioContext.prototype.createOscillator = function () { window.tones += 1; return create.call(this) }
})()`

/** Runs in the page: the stages that rows of fills have shown, oldest first. */
const COLLECT_STAGES = `(() => {
  window.stages = []
  const note = () => {
    const stage = document.querySelector('[data-stage]')?.dataset.stage
    if (stage !== undefined && window.stages.at(-1) !== stage) window.stages.push(stage)
  }
  new MutationObserver(note).observe(document, { subtree: true, childList: true, attributes: true })
})()`

describe('web: orders of every kind from the ticket', function () {
  this.timeout(4 * PATIENCE_MS)
  const exchange = usePageExchange()
  let watched: WatchedPage
  let page: Page
  let wallet: InjectedWallet
  let tap: FeedTap
  const base = (): string => exchange.stack.file.base_url

  before(async () => {
    watched = await openPage(exchange.browser)
    page = watched.page
    await page.addInitScript(COUNT_SIGNALS)
    wallet = await injectWallet(watched.context, exchange.stack.file.rpc_url)
    tap = await tapFeed(page, 1)
    await act.signIn(page, base())
    await act.fund(page, '9000')
    await act.registerKey(page)
    await act.openTrade(page, base())
  })
  after(async () => {
    await watched?.context.close()
    wallet?.close()
  })

  const line = async (label: string): Promise<string> => {
    const found = byId(page, 'preview').locator('.line').filter({ hasText: label })
    return (await found.locator('dd').textContent()) ?? ''
  }
  /** The preview answers the form as it is now. */
  const estimated = async (): Promise<void> => {
    await byId(page, 'place').waitFor({ timeout: PATIENCE_MS })
    await page.locator('[data-testid=preview]:not(.pending)').waitFor({ timeout: PATIENCE_MS })
  }
  /** Throws the refusal of the ticket, if there is one. */
  const place = async (): Promise<void> => {
    const [button, refusal] = [byId(page, 'place'), byId(page, 'refusal')]
    await button.or(refusal).first().waitFor({ timeout: PATIENCE_MS })
    if (await refusal.isVisible())
      throw new Error(`${await refusal.getAttribute('data-code')}: ${await refusal.textContent()}`)
    await button.click({ timeout: PATIENCE_MS })
  }
  const isHidden = (hidden: boolean): Promise<void> =>
    page.evaluate<void>(
      `Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${hidden} })`,
    )

  it('when the size is in units, USDM or per cent, the preview shows the size in units', async () => {
    await page.getByRole('button', { name: 'Limit', exact: true }).click()
    await byId(page, 'price').fill('60000')
    for (const [unit, size, shown] of [
      ['units', '0.02', /^0\.020$/],
      ['notional', '1200', /^0\.020$/],
      ['available_margin', '10', /^0\.0\d\d$/],
    ] as const) {
      await page.getByLabel('Size unit').selectOption(unit)
      await byId(page, 'size').fill(size)
      await estimated()
      expect(await line('Order size'), unit).to.match(shown)
    }
    await page.getByLabel('Per cent of the available balance').fill('25')
    expect(await byId(page, 'size').inputValue()).to.equal('25')
    await page.getByLabel('Size unit').selectOption('units')
  })

  it('when a market order is prepared, its protection is shown, its fill passes the stages and is no worse', async () => {
    await page.evaluate<void>(COLLECT_STAGES)
    await page.getByRole('tab', { name: 'Fills' }).click()
    await page.getByRole('button', { name: 'Market', exact: true }).click()
    await byId(page, 'size').fill('0.02')
    await byId(page, 'protection').waitFor({ timeout: PATIENCE_MS })
    await byId(page, 'place').click({ timeout: PATIENCE_MS })
    await page.locator('[data-stage=CONFIRMED]').first().waitFor({ timeout: PATIENCE_MS })
    const stages = await page.evaluate<readonly string[]>('window.stages')
    const order = ['MATCHED', 'SUBMITTED', 'MINED', 'CONFIRMED'].filter((stage) => stages.includes(stage))
    expect(stages).to.deep.equal(order)
    expect(stages.length).to.be.greaterThan(1)
    const cells = await byId(page, 'fills').locator('tbody tr').first().locator('td').allTextContents()
    const [price, protectedTo] = [cells[2], cells[3]].map((cell) => Number(cell?.replaceAll(',', '')))
    expect(price)
      .to.be.greaterThan(0)
      .and.at.most(protectedTo ?? 0)
  })

  it('when the visitor has not turned them on, a fill makes no sound and no notification; afterwards it does', async () => {
    expect(await page.evaluate('[window.notes.length, window.tones]')).to.deep.equal([0, 0])
    await page.locator('header.bar').getByLabel('Settings').click()
    await page.getByRole('switch', { name: 'Notifications' }).check()
    await page.getByRole('switch', { name: 'Sounds' }).check()
    await page.goBack()
    await page.getByRole('button', { name: 'Market', exact: true }).click()
    await byId(page, 'size').fill('0.01')
    await estimated()
    // Before the order: its fill may come before the next step of a test.
    await isHidden(true)
    await byId(page, 'place').click()
    while ((await page.evaluate<number>('window.notes.length * window.tones')) === 0)
      await page.waitForTimeout(50)
    await isHidden(false)
    expect(await page.evaluate<string>('window.notes[0]')).to.match(/^Bought 0\.0\d+ BTC-PERP at /)
  })

  it('when an own order has filled, the tape of batches shows the own share', async () => {
    const share = page.locator('.own-share').first()
    await share.waitFor({ timeout: PATIENCE_MS })
    expect(await share.textContent()).to.match(/^\d+%$/)
  })

  it('when a position is open, the preview compares before and after, and states the fee', async () => {
    await page.getByRole('button', { name: 'Market', exact: true }).click()
    await byId(page, 'size').fill('0.01')
    await estimated()
    for (const label of ['Position', 'Margin', 'Leverage', 'Liquidation price'])
      expect(await line(label), label).to.match(/[\d,.]+×? → [\d,.]+×?$/)
    expect(await line('Fee')).to.match(/^[\d.]+ USDM$/)
    await byId(page, 'size').fill('')
  })

  it('when the mark moves, the profit of the position is that of the new mark before any other read', async () => {
    await page.getByRole('tab', { name: 'Positions' }).click()
    const response = await page.waitForResponse(/\/v0\/positions/, { timeout: PATIENCE_MS })
    const { positions } = (await response.json()) as { readonly positions: readonly Position[] }
    const position = positions.find(({ market_id }) => market_id === 1)
    if (position === undefined) throw new Error('there is no position')
    await page.route(/\/v0\/positions/, () => {})
    for (const mark of [70_000n, 50_000n]) {
      tap.override = { mark_price_e18_raw: String(mark * E18) }
      const size = BigInt(position.size_e18_raw)
      const profit = size * mark - BigInt(position.entry_notional_e18_raw)
      const wanted = Number(profit / 10n ** 16n) / 100
      const words = `${wanted > 0 ? '+' : ''}${wanted.toFixed(2)} (`
      await byId(page, 'pnl').filter({ hasText: words }).waitFor({ timeout: PATIENCE_MS })
    }
    tap.override = {}
    await page.unroute(/\/v0\/positions/)
  })

  it('when the position is ranked for deleveraging, as many lights are on as its rank', async () => {
    await page.getByRole('tab', { name: 'Positions' }).click()
    const rank = byId(page, 'positions')
      .getByRole('img', { name: /^Rank [1-5] of 5/ })
      .first()
    await rank.waitFor({ timeout: PATIENCE_MS })
    const name = await rank.getAttribute('aria-label')
    expect(await rank.locator('.on').count()).to.equal(Number(name?.split(' ')[1]))
  })

  it('when each of the eight types is placed, it is listed with its type, and one button cancels them all', async () => {
    await page.getByRole('tab', { name: /Open orders/ }).click()
    for (const type of ORDER_TYPES) {
      if (type === 'MARKET') continue
      const trigger = type.startsWith('STOP_LOSS') ? '40000' : '80000'
      if (type === 'LIMIT') await page.getByRole('button', { name: 'Limit', exact: true }).click()
      else {
        await page.getByRole('button', { name: 'Trigger', exact: true }).click()
        await page.getByLabel('Trigger order type').selectOption(type)
        await byId(page, 'trigger').fill(trigger)
      }
      const side = /TAKE_PROFIT|STOP_LOSS/.test(type) ? 'Sell / short' : 'Buy / long'
      await page.getByRole('button', { name: side }).click()
      if (!type.endsWith('MARKET')) await byId(page, 'price').fill(type === 'LIMIT' ? '60000' : trigger)
      await byId(page, 'size').fill('0.01')
      await place()
      await byId(page, 'orders')
        .getByRole('cell', { name: new RegExp(`^${WORDS[type]}(,|$)`) })
        .first()
        .waitFor({ timeout: PATIENCE_MS })
      await page.locator('[data-testid=place]').waitFor({ state: 'detached', timeout: PATIENCE_MS })
    }
    const legend = byId(page, 'chart-legend')
    for (const words of [
      'buy 0.01 60000.0',
      'trigger sell 0.01 80000.0',
      'entry',
      'liquidation',
      'band high',
    ])
      expect(await legend.textContent()).to.contain(words)
    expect(await legend.textContent()).to.match(/[2-9] fills$/)
    await byId(page, 'book').locator('.bids .own').first().waitFor({ timeout: PATIENCE_MS })
    await page.getByRole('button', { name: 'Cancel all' }).click()
    await toast(page, '7 orders cancelled')
    await page.getByText('No open order.').waitFor({ timeout: PATIENCE_MS })
    await page.getByRole('button', { name: 'Buy / long' }).click()
  })

  it('when orders are to be confirmed, the ticket shows the order in words before it is signed', async () => {
    await page.locator('header.bar').getByLabel('Settings').click()
    await page.getByRole('switch', { name: 'Confirm orders' }).check()
    await page.goBack()
    await byId(page, 'price').fill('60000')
    await byId(page, 'size').fill('0.01')
    await byId(page, 'place').click({ timeout: PATIENCE_MS })
    const dialog = page.getByRole('dialog', { name: 'Confirm the order' })
    expect(await dialog.textContent()).to.contain('Buy 0.010 BTC-PERP, limit at 60000, 5×.')
    await dialog.getByRole('button', { name: 'Confirm' }).click()
    await toast(page, 'Order placed')
  })

  it('when the page is loaded again behind a market order, the fill and its stages are still shown', async () => {
    await page.evaluate<void>(`localStorage.removeItem('clearbatch.settings')`)
    await page.reload()
    await act.untilLive(page)
    await page.getByRole('tab', { name: 'Fills' }).click()
    const fills = byId(page, 'fills').locator('tbody tr')
    await fills.first().waitFor({ timeout: PATIENCE_MS })
    const known = await fills.count()
    const placed = page.waitForResponse((response) => response.url().endsWith('/v0/orders'))
    await act.marketOrder(page, 'Buy / long', '0.005')
    await placed
    await page.reload()
    await page.getByRole('tab', { name: 'Fills' }).click()
    await fills.nth(known).waitFor({ timeout: PATIENCE_MS })
    await fills.first().locator('[data-stage=CONFIRMED]').waitFor({ timeout: PATIENCE_MS })
  })

  it('when the lists of the portfolio are saved, each file has the columns of its list', async () => {
    await page.locator('header.bar').getByRole('link', { name: 'Portfolio' }).click()
    for (const name of ['Positions', 'Fills', 'Funding', 'Transactions']) {
      await page.getByRole('tab', { name }).click()
      const saved = page.waitForEvent('download', { timeout: PATIENCE_MS })
      await page.getByRole('button', { name: `${name} as CSV` }).click()
      const [head] = (await text(await (await saved).createReadStream())).split('\r\n')
      expect(head?.split(',').length, name).to.be.greaterThan(5)
    }
    expect(watched.faults).to.deep.equal([])
  })
})
