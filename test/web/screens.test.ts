import { readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { AxeBuilder } from '@axe-core/playwright'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { SCREENS } from '../../api/page/serve.ts'
import { byId, openTrade, PATIENCE_MS, untilLive } from './support/actions.ts'
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
]
const DIST = resolve('web/dist/assets')

/** Compressed sizes of the files whose names match, in bytes. */
const sizeOf = (pattern: RegExp): number =>
  readdirSync(DIST)
    .filter((name) => name.endsWith('.gz') && pattern.test(name))
    .reduce((sum, name) => sum + statSync(join(DIST, name)).size, 0)

/** Files that the browser loads for the trade screen before any chart or ticket. */
function entrySize(html: string): number {
  const names = [...html.matchAll(/\/assets\/([\w.-]+\.(?:js|css))/g)].map(([, name]) => name as string)
  return names.reduce((sum, name) => sum + statSync(join(DIST, `${name}.gz`)).size, 0)
}

const KB = 1_000

describe('web: screens', function () {
  this.timeout(6 * PATIENCE_MS)
  const exchange = usePageExchange()
  const base = (): string => exchange.stack.file.base_url

  it('when the page is built, its files are within their budgets', async () => {
    const html = await (await fetch(base())).text()
    expect(entrySize(html)).to.be.at.most(60 * KB)
    expect(sizeOf(/^chart-/)).to.be.at.most(65 * KB)
    expect(sizeOf(/^worker-/)).to.be.at.most(22 * KB)
    expect(sizeOf(/./)).to.be.at.most(159 * KB)
  })

  it('when a screen is requested, its policy allows only own scripts and the configured connections', async () => {
    const { headers } = await fetch(`${base()}/trade/BTC-PERP`)
    const policy = headers.get('content-security-policy') ?? ''
    const { issuer_url, rpc_url } = exchange.stack.file
    const host = new URL(base()).host
    expect(policy).to.contain("default-src 'none'; script-src 'self'; style-src 'self'")
    expect(policy).to.contain(`connect-src 'self' ws://${host} wss://${host} ${issuer_url} ${rpc_url};`)
    expect(policy).not.to.contain('unsafe')
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

  for (const theme of ['dark', 'light'] as const)
    it(`when every screen is checked by axe in the ${theme} theme, it finds no violation`, async () => {
      const { page, context } = await openPage(exchange.browser, { theme })
      const found: string[] = []
      for (const path of PATHS) {
        await page.goto(`${base()}${path}`)
        await page.locator('h1').first().waitFor({ timeout: PATIENCE_MS })
        await untilLive(page)
        const { violations } = await new AxeBuilder({ page }).analyze()
        for (const { id, nodes } of violations)
          found.push(`${path}: ${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`)
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
})
