import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Page, Request } from 'playwright-core'
import * as act from './support/actions.ts'
import { openPage, type WatchedPage } from './support/browser.ts'
import { usePageExchange } from './support/exchange.ts'
import { type InjectedWallet, injectWallet } from './support/injected-wallet.ts'

const { byId, PATIENCE_MS, toast } = act

const isRenewal = (request: Request): boolean =>
  request.method() === 'POST' && request.url().endsWith('/v0/orders/cancel/all-after')

/** Headless tabs are always visible, so the page is given the state of a tab in the background. */
const show = (page: Page, isVisible: boolean): Promise<void> =>
  page.evaluate<void>(`(() => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${!isVisible} })
    document.dispatchEvent(new Event('visibilitychange'))
  })()`)

describe('web: two tabs, a release, and an exchange that is away', function () {
  this.timeout(4 * PATIENCE_MS)
  const exchange = usePageExchange()
  let watched: WatchedPage
  let wallet: InjectedWallet
  let first: Page
  let second: Page
  const base = (): string => exchange.stack.file.base_url

  before(async () => {
    watched = await openPage(exchange.browser)
    first = watched.page
    wallet = await injectWallet(watched.context, exchange.stack.file.rpc_url)
    await act.signIn(first, base())
    await act.fund(first, '1000')
    await act.registerKey(first)
    second = await watched.context.newPage()
    await second.goto(`${base()}/account`)
  })
  after(async () => {
    await watched?.context.close()
    wallet?.close()
  })

  it('when a second tab opens, it has the session and the session key of the first', async () => {
    await byId(second, 'key-ready').waitFor({ timeout: PATIENCE_MS })
    expect(await byId(second, 'account').textContent()).to.contain(wallet.address)
  })

  it('when the dead-man switch is on, exactly one tab renews it', async () => {
    await byId(first, 'arm').click()
    await byId(first, 'armed').filter({ hasText: 'renewed by this tab' }).waitFor({ timeout: PATIENCE_MS })
    await byId(second, 'armed')
      .filter({ hasText: 'renewed by another tab' })
      .waitFor({ timeout: PATIENCE_MS })
  })

  it('when the tab that renews it is closed, the other tab takes over', async () => {
    await first.close()
    await byId(second, 'armed').filter({ hasText: 'renewed by this tab' }).waitFor({ timeout: PATIENCE_MS })
    await second.getByRole('button', { name: 'Turn off' }).click()
  })

  it('when the tab that renews it is hidden, it lets the switch fire, and says so when it is shown', async () => {
    await act.openTrade(second, base())
    await byId(second, 'price').fill('60000')
    await byId(second, 'size').fill('0.001')
    await byId(second, 'place').click({ timeout: PATIENCE_MS })
    await toast(second, 'Order placed')
    await byId(second, 'account-link').click()
    await second.getByLabel('Seconds until the switch fires').selectOption('30')
    await byId(second, 'arm').click()
    await byId(second, 'armed').filter({ hasText: 'renewed by this tab' }).waitFor({ timeout: PATIENCE_MS })
    const renewals: string[] = []
    await show(second, false)
    second.on('request', (request) => {
      if (isRenewal(request)) renewals.push(request.url())
    })
    await toast(second, 'cancelled by the dead-man switch')
    expect(renewals).to.deep.equal([])
    await show(second, true)
    await toast(second, 'The dead-man switch has fired while this tab was hidden')
  })

  it('when the page is loaded on another screen, the tab renews the switch there too', async () => {
    const renewed = second.waitForRequest(isRenewal, { timeout: PATIENCE_MS })
    await second.goto(`${base()}/trade/BTC-PERP`)
    await renewed
    await byId(second, 'account-link').click()
    await second.getByRole('button', { name: 'Turn off' }).click()
  })

  it('when an order cannot be sent, the message says that its outcome is unknown, and then what became of it', async () => {
    await act.openTrade(second, base())
    await second.route(/\/v0\/orders$/, (route) => route.abort())
    await act.marketOrder(second, 'Buy / long', '0.001')
    await toast(second, 'Is the order placed?')
    await toast(second, 'The order was not placed')
    await second.unroute(/\/v0\/orders$/)
  })

  it('when an answer is lost after the order was placed, the message says that it was placed', async () => {
    await second.route(/\/v0\/orders$/, async (route) => {
      await route.fetch()
      await route.abort()
    })
    await byId(second, 'size').fill('0.002')
    await byId(second, 'place').click({ timeout: PATIENCE_MS })
    await toast(second, 'The order was placed')
    await second.unroute(/\/v0\/orders$/)
  })

  it('when a file of the page is gone after a release, the page loads itself again once', async () => {
    let refused = 0
    await second.route(/\/assets\/screens-.*\.js/, async (route) => {
      refused += 1
      if (refused === 1) await route.fulfill({ status: 404, body: '' })
      else await route.continue()
    })
    await second.goto(`${base()}/risk`)
    await byId(second, 'risk').waitFor({ timeout: PATIENCE_MS })
    expect(refused).to.be.greaterThan(1)
  })

  it('when the file of the verifier is gone after a release, the page loads itself again and verifies the batch', async () => {
    await second.evaluate('sessionStorage.clear()')
    let refused = 0
    await second.route(/\/assets\/verifier-.*\.js/, async (route) => {
      refused += 1
      if (refused === 1) await route.fulfill({ status: 404, body: '' })
      else await route.continue()
    })
    await second.goto(`${base()}/batch/1/2`)
    await act.chooseNode(second, exchange.stack.file.rpc_url)
    await act.proofColour(second, 'green')
    expect(refused).to.be.greaterThan(1)
  })

  it('when a part of the page stays missing, a message says so', async () => {
    await second.route(/\/assets\/trading-.*\.js/, (route) => route.fulfill({ status: 404, body: '' }))
    await second.goto(`${base()}/status`)
    await toast(second, 'The page could not do this')
    await second.unroute(/\/assets\/trading-.*\.js/)
  })

  it('when one tab signs out, the other does too', async () => {
    const third = await watched.context.newPage()
    await third.goto(`${base()}/account`)
    await byId(third, 'account').waitFor({ timeout: PATIENCE_MS })
    await second.goto(`${base()}/account`)
    await second.getByRole('button', { name: 'Sign out' }).click()
    await byId(third, 'sign-in').waitFor({ timeout: PATIENCE_MS })
    expect(watched.faults).to.deep.equal([])
  })
})
