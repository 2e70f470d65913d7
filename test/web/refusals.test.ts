import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Page } from 'playwright-core'
import * as act from './support/actions.ts'
import { violations } from './support/axe.ts'
import { openPage, type WatchedPage } from './support/browser.ts'
import { usePageExchange } from './support/exchange.ts'
import { type InjectedWallet, injectWallet } from './support/injected-wallet.ts'

const { byId, PATIENCE_MS } = act

const PLACEMENT = /\/v0\/orders$/
const ESTIMATE = /\/v0\/orders\/estimate$/

/** Refusals that the ticket causes by itself. `remedies`: its button offers a value that the exchange accepts, or names another reason. */
const CAUSED = [
  { code: 'TICK_SIZE', price: '60000.05', size: '0.01', remedies: true },
  { code: 'WOULD_TAKE', price: '64000', size: '0.01', check: 'Post only', remedies: true },
  { code: 'MAX_ORDER_PRICE', price: '999999999999', size: '0.01', remedies: true },
  { code: 'PRICE_BAND', price: '900000', size: '0.01', remedies: true },
  { code: 'MIN_ORDER_SIZE', price: '60000', size: '0.0001', remedies: true },
  { code: 'MAX_ORDER_SIZE', price: '60000', size: '5000', remedies: true },
  { code: 'INSUFFICIENT_MARGIN', price: '60000', size: '50', remedies: true },
  { code: 'REDUCE_ONLY_NO_POSITION', price: '60000', size: '0.01', check: 'Reduce only', remedies: false },
] as const

/** Refusals that need a state of the exchange which a test cannot bring about in passing: the real answer with another refusal. */
const STATED = [
  { code: 'ORACLE_STALE', message: 'The oracle price is stale.' },
  { code: 'MARKET_NOT_OPEN', message: 'The market accepts no orders now.' },
  { code: 'MARKET_ENDED', message: 'The market has ended.' },
  { code: 'OPEN_ORDER_LIMIT', message: 'The account has the most open orders that a market allows.' },
  { code: 'POSITION_LIMIT', message: 'The position would be larger than the market allows.' },
  {
    code: 'MARGIN_REQUIREMENT',
    message: 'The leverage is too high for the margin requirement.',
    nearest_valid_leverage: 3,
  },
] as const

describe('web: refusals of the ticket, on a phone in the light theme', function () {
  this.timeout(4 * PATIENCE_MS)
  const exchange = usePageExchange()
  let watched: WatchedPage
  let page: Page
  let wallet: InjectedWallet
  const base = (): string => exchange.stack.file.base_url

  before(async () => {
    watched = await openPage(exchange.browser, { theme: 'light', phone: true })
    page = watched.page
    wallet = await injectWallet(watched.context, exchange.stack.file.rpc_url)
  })
  after(async () => {
    await watched?.context.close()
    wallet?.close()
  })

  async function openTicket(): Promise<void> {
    await act.openTrade(page, base())
    await act.openSheet(page, 'Trade')
  }

  const blocked = (words: string): Promise<void> =>
    page.locator('.ticket').getByText(words, { exact: true }).waitFor({ timeout: PATIENCE_MS })

  const refusal = (code: string) => page.locator(`[data-testid=refusal][data-code=${code}]`)

  async function fill({ price, size }: { readonly price: string; readonly size: string }): Promise<void> {
    await byId(page, 'price').fill(price)
    await byId(page, 'size').fill(size)
  }

  it('when no account is signed in, the ticket offers to connect', async () => {
    await openTicket()
    await blocked('Connect to trade')
  })

  it('when there is no session key, the ticket offers to register one', async () => {
    await act.signIn(page, base())
    await openTicket()
    await blocked('Register a session key')
  })

  it('when a field is missing, the ticket names it, one at a time', async () => {
    await page.goto(`${base()}/account`)
    await act.fund(page, '1000')
    await act.registerKey(page)
    await openTicket()
    await blocked('Enter a size')
    await byId(page, 'size').fill('0.01')
    await blocked('Enter a price')
    await page.getByLabel('TP / SL').check()
    await byId(page, 'price').fill('60000')
    await blocked('Enter a take profit or a stop loss')
    await page.getByLabel('TP / SL').uncheck()
    await page.getByRole('button', { name: 'Trigger', exact: true }).click()
    await blocked('Enter a trigger price')
    await page.getByRole('button', { name: 'Limit', exact: true }).click()
  })

  for (const { code, remedies, ...rest } of CAUSED)
    it(`when the exchange would answer ${code}, the ticket says why${remedies ? ', and its button removes it' : ''}`, async () => {
      if ('check' in rest) await page.getByLabel(rest.check).check()
      await fill(rest)
      await refusal(code).waitFor({ timeout: PATIENCE_MS })
      expect(await byId(page, 'place').count()).to.equal(0)
      if (remedies) {
        await byId(page, 'remedy').click()
        await refusal(code).waitFor({ state: 'detached', timeout: PATIENCE_MS })
      }
      if ('check' in rest) await page.getByLabel(rest.check).uncheck()
    })

  it('when the refusals are removed, the order can be placed', async () => {
    await fill({ price: '60000', size: '0.01' })
    await byId(page, 'place').waitFor({ timeout: PATIENCE_MS })
  })

  it('when the state of the exchange forbids the order, the ticket says which', async () => {
    for (const [index, { code, message, ...rest }] of STATED.entries()) {
      await page.route(ESTIMATE, async (route) => {
        const response = await route.fetch()
        const answer = (await response.json()) as { estimate: object }
        const stated = {
          code,
          message,
          field: null,
          nearest_valid: null,
          nearest_valid_leverage: null,
          ...rest,
        }
        await route.fulfill({
          response,
          json: { ...answer, estimate: { ...answer.estimate, refusal: stated } },
        })
      })
      // A changed size is estimated at once, an unchanged one every 3 s.
      await byId(page, 'size').fill(`0.00${index + 1}`)
      await refusal(code).filter({ hasText: message }).waitFor({ timeout: PATIENCE_MS })
      expect(await byId(page, 'place').count(), code).to.equal(0)
      await page.unroute(ESTIMATE)
      if ('nearest_valid_leverage' in rest) {
        await page.getByRole('button', { name: 'Use 3× leverage' }).click()
        expect(await page.locator('.leverage output').textContent()).to.equal('3×')
      }
    }
    await byId(page, 'place').waitFor({ timeout: PATIENCE_MS })
  })

  it('when the exchange refuses a placement, the ticket shows its reason until the order changes', async () => {
    await page.getByLabel('Post only').check()
    await fill({ price: '60000', size: '0.01' })
    // The book has moved since the ticket was checked: as the exchange words it.
    await page.route(PLACEMENT, (route) =>
      route.fulfill({
        status: 400,
        json: {
          message: 'The post-only order crosses an earlier limit order and could take.',
          details: {
            code: 'WOULD_TAKE',
            retryable: false,
            outcome: 'not_placed',
            field: 'price',
            nearest_valid: '59999.9',
          },
        },
      }),
    )
    await byId(page, 'place').click({ timeout: PATIENCE_MS })
    await refusal('WOULD_TAKE').waitFor({ timeout: PATIENCE_MS })
    await act.toast(page, 'The order was not placed.')
    await page.unroute(PLACEMENT)
    await byId(page, 'remedy').click()
    expect(await byId(page, 'price').inputValue()).to.equal('59999.9')
    await byId(page, 'place').waitFor({ timeout: PATIENCE_MS })
    await page.getByLabel('Post only').uncheck()
  })

  it('when the exchange refuses an exit, the ticket names it, and its button removes the reason', async () => {
    await fill({ price: '60000', size: '0.01' })
    await page.getByLabel('TP / SL').check()
    await page.getByLabel('Stop loss').fill('999999999999')
    await byId(page, 'place').click({ timeout: PATIENCE_MS })
    await refusal('MAX_ORDER_PRICE').waitFor({ timeout: PATIENCE_MS })
    expect(await page.getByLabel('Stop loss').getAttribute('aria-invalid')).to.equal('true')
    await byId(page, 'remedy').click()
    expect(await page.getByLabel('Stop loss').inputValue()).to.match(/^\d+(\.\d)?$/)
    await refusal('MAX_ORDER_PRICE').waitFor({ state: 'detached', timeout: PATIENCE_MS })
    await page.getByLabel('TP / SL').uncheck()
  })

  it('when a trigger is beside the grid, the ticket says so, and its button removes the reason', async () => {
    await page.getByRole('button', { name: 'Trigger', exact: true }).click()
    await byId(page, 'trigger').fill('90000.05')
    await refusal('TICK_SIZE').waitFor({ timeout: PATIENCE_MS })
    await byId(page, 'remedy').click()
    await refusal('TICK_SIZE').waitFor({ state: 'detached', timeout: PATIENCE_MS })
    expect(await byId(page, 'trigger').inputValue()).to.match(/^90000(\.1)?$/)
    await page.getByRole('button', { name: 'Limit', exact: true }).click()
  })

  it('when the session key is locked, the ticket offers to unlock it', async () => {
    await page.goto(`${base()}/account`)
    await page.getByRole('button', { name: 'Lock', exact: true }).click()
    await page.locator('header.bar .brand').click()
    await act.openSheet(page, 'Trade')
    await blocked('Unlock the session key')
    expect(watched.faults).to.deep.equal([])
  })

  /** The panels that differ for a trader, on a phone in both themes: what axe finds on each. */
  async function checkByAxe(): Promise<void> {
    const found: string[] = []
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme })
      for (const sheet of ['Trade', 'Account']) {
        await act.openSheet(page, sheet)
        found.push(...(await violations(page)))
      }
    }
    expect(found).to.deep.equal([])
  }

  it('when a position is open on the phone, its buttons are on the screen, and axe finds no violation', async () => {
    await page.getByRole('button', { name: 'Unlock the session key' }).click()
    await act.marketOrder(page, 'Buy / long', '0.001')
    await act.openSheet(page, 'Account')
    const close = byId(page, 'close')
    await close.waitFor({ timeout: PATIENCE_MS })
    const box = await close.boundingBox()
    expect(box).to.not.equal(null)
    expect((box?.x ?? 0) + (box?.width ?? 0)).to.be.at.most(390)
    await close.scrollIntoViewIfNeeded()
    await checkByAxe()
    await close.click()
    await page.getByText('No open position.').waitFor({ timeout: PATIENCE_MS })
  })
})
