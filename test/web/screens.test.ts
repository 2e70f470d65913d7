import { expect } from 'chai'
import { describe, it } from 'mocha'
import { SCREENS } from '../../api/page/serve.ts'
import { byId, openTrade, PATIENCE_MS, untilLive } from './support/actions.ts'
import { violations } from './support/axe.ts'
import { openPage } from './support/browser.ts'
import { usePageExchange } from './support/exchange.ts'

const PATHS = [
  '/trade/BTC-PERP',
  '/batch/1/2',
  '/markets',
  '/portfolio',
  '/risk',
  '/status',
  '/settings',
  '/account',
  '/operate',
]
/** Each screen and each colour pair: contrast depends on both. */
const LOOKS = [
  { theme: 'dark', colours: 'standard', phone: false },
  { theme: 'light', colours: 'standard', phone: false },
  { theme: 'dark', colours: 'colour-blind', phone: false },
  { theme: 'light', colours: 'colour-blind', phone: true },
  { theme: 'dark', colours: 'standard', phone: true },
] as const

describe('web: screens', function () {
  this.timeout(6 * PATIENCE_MS)
  const exchange = usePageExchange()
  const base = (): string => exchange.stack.file.base_url

  it('when a screen is requested, its policy allows only own scripts and the configured connections', async () => {
    const { headers } = await fetch(`${base()}/trade/BTC-PERP`)
    const policy = headers.get('content-security-policy') ?? ''
    const { issuer_url, rpc_url } = exchange.stack.file
    const host = new URL(base()).host
    expect(policy.split('; ')).to.deep.equal([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self' data:",
      "font-src 'self'",
      "worker-src 'self'",
      `connect-src 'self' ws://${host} wss://${host} ${issuer_url} ${rpc_url}`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ])
  })

  it('when a hashed file is requested, it is compressed and may be kept for a year', async () => {
    const html = await (await fetch(base())).text()
    const [, script = ''] = /src="(\/assets\/[^"]+)"/.exec(html) ?? []
    const { headers } = await fetch(`${base()}${script}`)
    expect(headers.get('content-encoding')).to.match(/^(br|gzip)$/)
    expect(headers.get('cache-control')).to.equal('public, max-age=31536000, immutable')
  })

  it('when a path is no screen, it stays the JSON error of the api', async () => {
    for (const path of [
      '/v0/trade',
      '/v0',
      '/nothing',
      '/assets/none.js',
      '/trade/BTC-PERP/more',
      '/health',
    ]) {
      const response = await fetch(`${base()}${path}`)
      expect(response.status, path).to.equal(404)
      expect(((await response.json()) as { details: { code: string } }).details.code).to.equal(
        'ROUTE_NOT_FOUND',
      )
    }
    expect((await fetch(`${base()}/docs/`)).status).to.equal(200)
    expect((await fetch(`${base()}/health/live`)).status).to.equal(200)
  })

  it('when the api lists its screens, the page knows each of them', async () => {
    const { page, context } = await openPage(exchange.browser)
    const known = SCREENS.map((path) =>
      path.replace(':symbol', 'BTC-PERP').replace(':market', '1').replace(':id', '2'),
    )
    for (const path of known) {
      await page.goto(`${base()}${path}`)
      await page.locator('main *').first().waitFor({ timeout: PATIENCE_MS })
      expect(await page.getByText('There is no such page').count(), path).to.equal(0)
    }
    await context.close()
  })

  for (const { theme, colours, phone } of LOOKS)
    it(`when every screen is checked by axe (${theme}, ${colours} colours${phone ? ', phone' : ''}), it finds no violation`, async () => {
      const { page, context } = await openPage(exchange.browser, { theme, phone, colours })
      const found: string[] = []
      for (const path of PATHS) {
        await page.goto(`${base()}${path}`)
        await page.locator('h1').first().waitFor({ timeout: PATIENCE_MS })
        await untilLive(page)
        found.push(...(await violations(page)))
      }
      await context.close()
      expect(found).to.deep.equal([])
    })

  it('when the screen is a phone, panels are shown one at a time and nothing is wider than the screen', async () => {
    const { page, context } = await openPage(exchange.browser, { phone: true })
    await openTrade(page, base())
    await page.getByRole('button', { name: 'Book', exact: true }).click()
    await byId(page, 'book').waitFor({ timeout: PATIENCE_MS })
    expect(await byId(page, 'ticket').isVisible()).to.equal(false)
    await page.getByRole('button', { name: 'Trade', exact: true }).click()
    expect(await byId(page, 'ticket').isVisible()).to.equal(true)
    expect(await page.evaluate<boolean>('document.documentElement.scrollWidth <= innerWidth')).to.equal(true)
    await context.close()
  })

  it('when only the keyboard is used, a market is found and the ticket is filled', async () => {
    const { page, context } = await openPage(exchange.browser)
    await openTrade(page, base())
    await byId(page, 'market-button').focus()
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    await page.getByLabel('Search markets').focus()
    await page.keyboard.type('aapl')
    await page.keyboard.press('Enter')
    await page.waitForURL('**/trade/AAPL-PERP')
    await byId(page, 'price').focus()
    await page.keyboard.type('200')
    expect(await byId(page, 'price').inputValue()).to.equal('200')
    await context.close()
  })

  it('when a choice is made on the settings screen, it takes effect at once and after a reload', async () => {
    const { page, context } = await openPage(exchange.browser)
    await page.goto(`${base()}/settings`)
    await page.getByRole('button', { name: 'Blue and orange' }).click()
    await page.getByRole('button', { name: 'Light', exact: true }).click()
    await page.getByRole('button', { name: 'UTC', exact: true }).click()
    await page.getByRole('switch', { name: 'Price flash' }).uncheck()
    const look = (): Promise<string> =>
      page.evaluate<string>(
        "[document.documentElement.dataset.theme, document.documentElement.dataset.colours].join(' ')",
      )
    expect(await look()).to.equal('light colour-blind')
    await openTrade(page, base())
    expect(await look()).to.equal('light colour-blind')
    expect(await byId(page, 'last-price').getAttribute('class')).not.to.contain('flash')
    await context.close()
  })
})
