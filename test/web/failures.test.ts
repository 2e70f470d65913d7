import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Page } from 'playwright-core'
import { ACTION_LIFETIME } from '../../domain/settlement/durations.ts'
import * as act from './support/actions.ts'
import { openPage, type WatchedPage } from './support/browser.ts'
import { usePageExchange } from './support/exchange.ts'
import { type InjectedWallet, injectWallet } from './support/injected-wallet.ts'

const { byId, PATIENCE_MS, toast } = act

/** Runs in the page: the ids of the orders in rows. */
const idsOf = (rows: readonly unknown[]): string[] =>
  rows.map((row) => (row as { readonly dataset: { readonly order: string } }).dataset.order)
/** Runs in the page. */
const lineOf = (element: unknown): string =>
  (
    globalThis as unknown as { getComputedStyle(of: unknown): { readonly textDecorationLine: string } }
  ).getComputedStyle(element).textDecorationLine
/** Runs in the page. */
const opacityOf = (element: unknown): number =>
  Number(
    (
      globalThis as unknown as { getComputedStyle(of: unknown): { readonly opacity: string } }
    ).getComputedStyle(element).opacity,
  )
const isOneOf = (ids: readonly string[]): string => ids.map((id) => `[data-order="${id}"]`).join(', ')

describe('web: a trader while parts of the exchange fail', function () {
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
    await act.signIn(page, base())
    await act.fund(page, '5000')
    await act.registerKey(page)
    await act.openTrade(page, base())
    await act.marketOrder(page, 'Buy / long', '0.01')
    await byId(page, 'positions').waitFor({ timeout: PATIENCE_MS })
  })
  after(async () => {
    await watched?.context.close()
    wallet?.close()
  })

  it('when the api is killed, a banner shows the age of the dimmed numbers, and the page recovers by itself', async () => {
    const restarted = exchange.stack.api.restart('SIGKILL')
    await byId(page, 'banner')
      .filter({ hasText: /as of \d+ s ago/ })
      .waitFor({ timeout: PATIENCE_MS })
    expect(await page.locator('.trade-grid').evaluate(opacityOf)).to.be.lessThan(1)
    await restarted
    await byId(page, 'banner').waitFor({ state: 'detached', timeout: 2 * PATIENCE_MS })
    await act.untilLive(page)
  })

  for (const name of ['api', 'keeper', 'indexer', 'engine'] as const)
    it(`when the ${name} is killed behind an order, the page states the outcome, and an order after it is confirmed`, async () => {
      const known = await orderIds()
      await act.marketOrder(page, 'Buy / long', '0.001')
      const restarted = exchange.stack[name].restart('SIGKILL')
      // At once, because a message is shown for seconds only.
      await Promise.all([outcomeStated(known), restarted])
      await act.untilLive(page)
      await placeUntilConfirmed()
    })

  it('when the database is killed behind an order, the page states the outcome, and an order after it is confirmed', async () => {
    const { postgres } = exchange.stack
    const known = await orderIds()
    await act.marketOrder(page, 'Buy / long', '0.001')
    const restarted = postgres.kill().then(() => postgres.restart())
    await Promise.all([outcomeStated(known), restarted])
    await act.untilLive(page)
    await placeUntilConfirmed()
  })

  it('when the backstop is killed, the page stays live, and an order is confirmed', async () => {
    await exchange.stack.backstop?.process.restart('SIGKILL')
    await act.untilLive(page)
    await placeUntilConfirmed()
  })

  /** All orders that the exchange has of the account. */
  async function orderIds(): Promise<readonly string[]> {
    await page.getByRole('tab', { name: 'Order history' }).click()
    await byId(page, 'order-history').locator('tbody tr').first().waitFor({ timeout: PATIENCE_MS })
    return byId(page, 'order-history').locator('tbody tr').evaluateAll(idsOf)
  }

  /** The engine may have died before the order, or behind it and before its batch: then no batch took it in time. */
  async function outcomeStated(known: readonly string[]): Promise<void> {
    const refused = byId(page, 'toast').filter({ hasText: 'not placed' })
    const ended = byId(page, 'order-history').locator(`tbody tr:not(${isOneOf(known)})`)
    const settled = ended.filter({ hasText: /filled|cancelled/ })
    await page.getByRole('tab', { name: 'Order history' }).click()
    await refused
      .or(settled)
      .first()
      .waitFor({ timeout: 2 * PATIENCE_MS })
  }

  /** Market orders, one after another, until a new fill is confirmed: a price that moves may leave one unfilled. */
  async function placeUntilConfirmed(): Promise<void> {
    await page.getByRole('tab', { name: 'Fills' }).click()
    const confirmed = page.locator('[data-stage=CONFIRMED]')
    const before = await confirmed.count()
    for (let attempt = 0; attempt < 5; attempt++) {
      await act.marketOrder(page, 'Buy / long', '0.001')
      const isConfirmed = await confirmed
        .nth(before)
        .waitFor({ timeout: PATIENCE_MS / 4 })
        .then(
          () => true,
          () => false,
        )
      if (isConfirmed) break
    }
    expect(await confirmed.count()).to.be.greaterThan(before)
    await page.getByRole('tab', { name: 'Positions' }).click()
  }

  it('when the chain stands still for longer than a settlement may take, the fill is struck through with the reason', async () => {
    const { chain } = exchange.stack
    const fillRow = byId(page, 'fills').locator('tr.voided').first()
    await page.getByRole('tab', { name: 'Fills' }).click()
    chain.signal('SIGSTOP')
    try {
      await act.marketOrder(page, 'Buy / long', '0.003')
      await toast(page, 'Bought 0.003')
      await page.waitForTimeout(ACTION_LIFETIME + 2_000)
    } finally {
      chain.signal('SIGCONT')
    }
    await fillRow.filter({ hasText: /Voided: \S/ }).waitFor({ timeout: 2 * PATIENCE_MS })
    expect(await fillRow.locator('td').first().evaluate(lineOf)).to.equal('line-through')
    await fillRow.locator('a').click()
    await act.chooseNode(page, exchange.stack.file.rpc_url)
    await act.proofColour(page, 'amber')
    expect(await byId(page, 'proof').textContent()).to.contain('its fills do not count')
    await page.goBack()
    await byId(page, 'positions').waitFor({ timeout: PATIENCE_MS })
  })

  it('when all of this is done, no error was uncaught and the policy has blocked nothing', () => {
    expect(watched.faults).to.deep.equal([])
  })
})
