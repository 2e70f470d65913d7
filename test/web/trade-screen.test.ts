import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import type { Browser, Page } from 'playwright-core'
import { PRICE_RULES } from '../../client/proof/price-rules.ts'
import type { Auction, Market } from '../../client/responses.ts'
import { byId, openTrade, PATIENCE_MS, untilLive } from './support/actions.ts'
import { openPage } from './support/browser.ts'
import { usePageExchange } from './support/exchange.ts'
import { tapFeed } from './support/feed-tap.ts'

const E18 = 10n ** 18n

/** Runs in the page. */
const animationOf = (element: unknown): string =>
  (
    globalThis as unknown as { getComputedStyle(of: unknown): { readonly animationName: string } }
  ).getComputedStyle(element).animationName

describe('web: what a visitor sees of the markets', function () {
  this.timeout(4 * PATIENCE_MS)
  const exchange = usePageExchange()
  const base = (): string => exchange.stack.file.base_url
  let markets: readonly Market[] = []

  before(async () => {
    markets = (await (await fetch(`${base()}/v0/markets`)).json()) as readonly Market[]
  })

  const withPage = async (
    run: (page: Page) => Promise<void>,
    options?: Parameters<typeof openPage>[1],
  ): Promise<void> => {
    const { page, context, faults } = await openPage(exchange.browser, options)
    await run(page)
    await context.close()
    expect(faults).to.deep.equal([])
  }
  const symbolOf = (type: Market['type']): string =>
    markets.find((market) => market.type === type)?.symbol ?? ''
  const headerText = async (page: Page): Promise<string> =>
    (await page.getByLabel('Market', { exact: true }).textContent()) ?? ''

  it('when a perpetual is shown, its header has prices, the last day, and funding with a countdown', () =>
    withPage(async (page) => {
      await openTrade(page, base())
      const text = await headerText(page)
      for (const label of ['Mark', 'Oracle', '24 h change', '24 h volume', 'Open interest'])
        expect(text).to.match(new RegExp(`${label}[+-]?[\\d,.]+`))
      expect(text).to.match(/Funding \/ 1 h · next in[+-]?[\d.]+% \d\d:\d\d:\d\d/)
    }))

  for (const { type, payout } of [
    { type: 'future', payout: 'final price' },
    { type: 'binary_future', payout: '1 if yes, 0 if no' },
  ] as const)
    it(`when a ${type.replace('_', ' ')} is shown, its header has expiry, dispute window and payout`, () =>
      withPage(async (page) => {
        await openTrade(page, base(), symbolOf(type))
        const text = await headerText(page)
        expect(text).to.match(/Expires in\d+ d/)
        expect(text).to.match(/Dispute window\d+ (min|h|d)/)
        expect(text).to.contain(`Payout${payout}`)
        expect(text).not.to.contain('Funding')
      }))

  it('when markets are searched by kind and one becomes a favourite, it is first, also after a reload', () =>
    withPage(async (page) => {
      await openTrade(page, base())
      await byId(page, 'market-button').click()
      const dialog = page.getByRole('dialog', { name: 'Markets' })
      const names = () => dialog.locator('tbody th').allTextContents()
      await dialog.getByRole('button', { name: 'Futures', exact: true }).click()
      expect(await names()).to.deep.equal([symbolOf('future')])
      await dialog.getByRole('button', { name: `Favourite ${symbolOf('future')}` }).click()
      await dialog.getByRole('button', { name: '★', exact: true }).first().click()
      expect(await names()).to.deep.equal([symbolOf('future')])
      await dialog.getByRole('button', { name: 'All', exact: true }).click()
      expect((await names())[0]).to.equal(symbolOf('future'))
      await page.reload()
      await byId(page, 'market-button').click({ timeout: PATIENCE_MS })
      await dialog.locator('tbody th').first().waitFor({ timeout: PATIENCE_MS })
      expect((await names())[0]).to.equal(symbolOf('future'))
      expect(await names()).to.have.length(markets.length)
    }))

  it('when interval and price of the chart are chosen, their candles are drawn, and the band edges are named', () =>
    withPage(async (page) => {
      await openTrade(page, base())
      const chart = page.getByLabel('Chart', { exact: true })
      for (const [button, wanted] of [
        ['5m', 'interval=5m&price_type=last'],
        ['Mark', 'interval=5m&price_type=mark'],
        ['Oracle', 'interval=5m&price_type=oracle'],
      ] as const) {
        const answered = page.waitForResponse((response) => response.url().includes('/candlesticks?'))
        await chart.getByRole('button', { name: button, exact: true }).click()
        const response = await answered
        expect(response.url()).to.contain(wanted)
        const { candles } = (await response.json()) as { readonly candles: readonly unknown[] }
        expect(candles.length, button).to.be.greaterThan(0)
      }
      const legend = await byId(page, 'chart-legend').textContent()
      expect(legend).to.match(/band low [\d.]+.*band high [\d.]+/)
    }))

  it('when the book is grouped, its prices are multiples of the group, and totals add up from the best price', () =>
    withPage(async (page) => {
      await openTrade(page, base())
      const book = byId(page, 'book')
      await book.locator('.bids .level').first().waitFor({ timeout: PATIENCE_MS })
      await page.getByLabel('Grouping').selectOption({ label: '10' })
      const rows = await page.evaluate<readonly (readonly string[])[]>(
        `[...document.querySelectorAll('.bids .level')].map((row) => [...row.children].slice(1).map((cell) => cell.textContent))`,
      )
      let total = 0
      expect(rows.length).to.be.greaterThan(0)
      for (const row of rows) {
        const [price = 0, size = 0, shown = 0] = row.map((text) => Number(text.replaceAll(',', '')))
        expect(price % 10).to.equal(0)
        total += size
        expect(shown).to.be.closeTo(total, 0.0005)
      }
    }))

  it('when batches are listed, each has price, volume, and the rationed side with its ratio', () =>
    withPage(async (page) => {
      await openTrade(page, base())
      const row = byId(page, 'batch-row').first()
      await row.waitFor({ timeout: PATIENCE_MS })
      expect(await page.locator('.cycle').textContent()).to.equal('200 ms')
      const href = (await row.getAttribute('href')) ?? ''
      const response = await fetch(`${base()}/v0/auctions?market_id=1&limit=100`)
      const { auctions } = (await response.json()) as { readonly auctions: readonly Auction[] }
      const auction = auctions.find(({ batch_id }) => href === `/batch/1/${batch_id}`)
      if (auction === undefined) throw new Error(`the exchange does not list ${href}`)
      const cells = await page.locator(`a[href="${href}"] > span`).allTextContents()
      expect(Number(cells[1]?.replaceAll(',', ''))).to.be.closeTo(Number(auction.price_e18_raw) / 1e18, 1e-6)
      expect(Number(cells[2]?.replaceAll(',', ''))).to.be.closeTo(Number(auction.volume_e18_raw) / 1e18, 1e-9)
      const side = auction.rationed_side
      if (side === null) expect(cells[3]).to.equal('even')
      else expect(cells[3]).to.match(new RegExp(`^${side === 'LONG' ? 'buys' : 'sells'} \\d+%$`))
    }))

  it('when a batch is opened, it has step curves, the rule of its price and who was rationed; its link opens alone', () =>
    withPage(async (page) => {
      await page.goto(`${base()}/batch/1/2`)
      await page.locator('.curves svg').waitFor({ timeout: PATIENCE_MS })
      for (const side of ['demand', 'supply'])
        expect(await page.locator(`.curves path.${side}`).getAttribute('d')).to.match(/^M[^L]*([HV]|L)/)
      const facts = (await page.locator('.cards').textContent()) ?? ''
      expect(Object.values(PRICE_RULES).some((words) => facts.includes(words))).to.equal(true)
      expect(facts).to.match(/Each of the (buys|sells) fills [\d.]+% of its size|Both sides fill completely/)
    }))

  it('when a visitor reads and verifies, the page connects only to the exchange until a node is chosen', () =>
    withPage(async (page) => {
      const origins = new Set<string>()
      page.on('request', (request) => origins.add(new URL(request.url()).origin))
      await openTrade(page, base())
      await page.goto(`${base()}/batch/1/2`)
      await page.locator('[data-testid=proof][data-colour=grey]').waitFor({ timeout: PATIENCE_MS })
      expect([...origins]).to.deep.equal([base()])
      const asked = page.waitForRequest((request) => request.url().startsWith(exchange.stack.file.rpc_url))
      await byId(page, 'node').selectOption(exchange.stack.file.rpc_url)
      await asked
    }))

  for (const { motion, animation } of [
    { motion: 'no-preference', animation: 'flash-up' },
    { motion: 'reduce', animation: 'none' },
  ] as const)
    it(`when the last price rises and the system asks for ${motion === 'reduce' ? 'less' : 'no less'} motion, its animation is ${animation}`, () =>
      withPage(async (page) => {
        await page.emulateMedia({ reducedMotion: motion })
        const tap = await tapFeed(page, 1)
        tap.override = { last_price_e18_raw: String(50_000n * E18) }
        await openTrade(page, base())
        const last = byId(page, 'last-price')
        await last.filter({ hasText: '50,000.0' }).waitFor({ timeout: PATIENCE_MS })
        tap.override = { last_price_e18_raw: String(50_001n * E18) }
        await last.filter({ hasText: '50,001.0' }).waitFor({ timeout: PATIENCE_MS })
        expect(await last.getAttribute('class')).to.match(/flash up$/)
        expect(await last.evaluate(animationOf)).to.equal(animation)
        expect(await page.title()).to.equal('50,001.0 BTC-PERP · Clearbatch')
      }))

  async function germanPage(browser: Browser) {
    const context = await browser.newContext({ locale: 'de-DE', timezoneId: 'Asia/Tokyo' })
    return { context, page: await context.newPage() }
  }

  it('when the locale is German in Tokyo, numbers and times are written so, and the UTC switch moves times by 9 h', async () => {
    const { page, context } = await germanPage(exchange.browser)
    await openTrade(page, base())
    expect(await byId(page, 'last-price').textContent()).to.match(/^\d{1,3}(\.\d{3})*,\d$/)
    await page.goto(`${base()}/batch/1/2`)
    const time = page.locator('.page-head .muted')
    await time.waitFor({ timeout: PATIENCE_MS })
    const hourOf = async (): Promise<number> =>
      Number(/(\d\d):\d\d:\d\d/.exec((await time.textContent()) ?? '')?.[1])
    const local = await hourOf()
    await page.goto(`${base()}/settings`)
    await page.getByRole('button', { name: 'UTC', exact: true }).click()
    await page.goBack()
    await time.waitFor({ timeout: PATIENCE_MS })
    expect((local - (await hourOf()) + 24) % 24).to.equal(9)
    await context.close()
  })

  it('when one panel cannot show what it has received, all other panels stay, and Retry shows it again', () =>
    withPage(async (page) => {
      const STATS = /\/v0\/markets\/stats$/
      let isBroken = true
      await page.route(STATS, async (route) => {
        const response = await route.fetch()
        const stats = (await response.json()) as readonly object[]
        const broken = stats.map((each) => ({ ...each, notional_24h_e18_raw: 'no number' }))
        await route.fulfill({ response, json: isBroken ? broken : stats })
      })
      // The feed would replace the statistics of the shown market.
      await page.routeWebSocket(/\/v0\/ws$/, (socket) => {
        const server = socket.connectToServer()
        server.onMessage((text) => {
          if (!String(text).includes('.stats"')) socket.send(text)
        })
      })
      await page.goto(`${base()}/trade/BTC-PERP`)
      const failed = page.getByRole('alert').filter({ hasText: 'The market bar could not be shown' })
      await failed.waitFor({ timeout: PATIENCE_MS })
      await byId(page, 'batch-row').first().waitFor({ timeout: PATIENCE_MS })
      isBroken = false
      const read = page.waitForResponse(STATS, { timeout: PATIENCE_MS })
      await read
      await failed.getByRole('button', { name: 'Retry' }).click()
      await byId(page, 'market-button').waitFor({ timeout: PATIENCE_MS })
    }))

  it('when markets, risk and status are opened, each market has its row, its day as a line, and its lag', () =>
    withPage(async (page) => {
      // A young exchange has no second quarter of an hour.
      const closes = ['3', '1', '2'].map((close) => ({ close_e18_raw: `${close}000000000000000000` }))
      await page.route(/\/candlesticks\?/, (route) => route.fulfill({ json: { candles: closes } }))
      await page.goto(`${base()}/markets`)
      await page.locator('[data-testid=markets] svg.spark path').first().waitFor({ timeout: PATIENCE_MS })
      expect(await byId(page, 'markets').locator('tbody tr').count()).to.equal(markets.length)
      await page.locator('header.bar').getByRole('link', { name: 'Risk' }).click()
      const risk = byId(page, 'risk').locator('tbody tr')
      await risk.first().waitFor({ timeout: PATIENCE_MS })
      expect(await risk.count()).to.equal(markets.length)
      await page.locator('header.bar').getByRole('link', { name: 'Status' }).click()
      await untilLive(page)
      const cards = page.locator('.card')
      await cards.first().waitFor({ timeout: PATIENCE_MS })
      const text = (await cards.allTextContents()).join(' ')
      for (const name of ['REST interface', 'Live feed', 'Chain', 'Oracle', 'Read model', 'Placements'])
        expect(text).to.contain(name)
      expect(text).to.match(/block \d+, read/)
      expect(await page.locator('table tbody tr').count()).to.equal(markets.length)
    }))
})
