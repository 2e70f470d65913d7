import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Page } from 'playwright-core'
import * as act from './support/actions.ts'
import { openPage, type WatchedPage } from './support/browser.ts'
import { usePageExchange } from './support/exchange.ts'
import { type InjectedWallet, injectWallet } from './support/injected-wallet.ts'
import { serveStatically } from './support/static-host.ts'

const { byId, PATIENCE_MS, toast } = act

/** Runs in the page: what a script finds in the database of the browser. */
const READ_VAULT = `(async () => {
  const database = await new Promise((resolve) => {
    const request = indexedDB.open('clearbatch')
    request.onsuccess = () => resolve(request.result)
  })
  const store = database.transaction('secrets').objectStore('secrets')
  const all = (request) => new Promise((resolve) => { request.onsuccess = () => resolve(request.result) })
  const [names, values] = [await all(store.getAllKeys()), await all(store.getAll())]
  const entries = []
  for (const [index, name] of names.entries()) {
    const value = values[index]
    if (value instanceof CryptoKey) {
      const isRead = await crypto.subtle.exportKey('raw', value).then(() => true, () => false)
      entries.push({ name, isKey: true, isReadable: value.extractable || isRead, text: '' })
      continue
    }
    const text = String.fromCharCode(...new Uint8Array(value.data))
    entries.push({ name, isKey: false, isReadable: false, text })
  }
  return entries
})()`

interface Entry {
  readonly name: string
  readonly isKey: boolean
  readonly isReadable: boolean
  readonly text: string
}

const OTHER_ISSUER = 'https://issuer.example/realm'

describe('web: the session key in this browser', function () {
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

  it('when the identity provider is away, the page says that the sign-in cannot start, and it starts afterwards', async () => {
    await page.goto(`${base()}/account`)
    await byId(page, 'wallet').click({ timeout: PATIENCE_MS })
    await page.route(/openid-configuration$/, (route) => route.abort())
    await byId(page, 'sign-in').click()
    await toast(page, 'The sign-in cannot start')
    await page.unroute(/openid-configuration$/)
    await exchange.stack.issuer.restart('SIGKILL')
    await exchange.stack.issuer.ready()
    await act.signIn(page, base())
  })

  it('when the site names another identity provider, the sign-in goes there, with the client of the site', async () => {
    const host = await serveStatically({
      api_url: base(),
      issuer_url: OTHER_ISSUER,
      client_id: 'another-client',
      rpc_urls: [],
    })
    const other = await openPage(exchange.browser)
    const otherWallet = await injectWallet(other.context, exchange.stack.file.rpc_url)
    await other.page.route(`${OTHER_ISSUER}/**`, async (route) => {
      const isDiscovery = route.request().url().endsWith('/.well-known/openid-configuration')
      const endpoints = {
        authorization_endpoint: `${OTHER_ISSUER}/authorize`,
        token_endpoint: `${OTHER_ISSUER}/token`,
      }
      const headers = { 'access-control-allow-origin': '*' }
      await (isDiscovery ? route.fulfill({ json: endpoints, headers }) : route.fulfill({ body: 'here' }))
    })
    await other.page.goto(`${host.url}/account`)
    await byId(other.page, 'wallet').click({ timeout: PATIENCE_MS })
    await byId(other.page, 'sign-in').click()
    await other.page.waitForURL(`${OTHER_ISSUER}/authorize?**`, { timeout: PATIENCE_MS })
    const query = new URL(other.page.url()).searchParams
    expect(query.get('client_id')).to.equal('another-client')
    expect(query.get('redirect_uri')).to.equal(`${host.url}/signed-in`)
    expect(query.get('code_challenge_method')).to.equal('S256')
    expect(other.faults).to.deep.equal([])
    await other.context.close()
    otherWallet.close()
    await host.close()
  })

  it('when a session key is to be registered, the page shows its permission and lifetime, and what the storage protects from', async () => {
    const panel = byId(page, 'session-keys')
    expect(await panel.textContent()).to.contain('not from a malicious script in this page')
    await byId(page, 'register-key').click({ timeout: PATIENCE_MS })
    const decoded = (await byId(page, 'decoded').textContent()) ?? ''
    expect(decoded).to.match(/Key0x[0-9a-f]{40}/)
    expect(decoded).to.contain('place and cancel orders; change margin and leverage. It cannot withdraw.')
    expect(decoded).to.contain('30 days from its first registration')
    await byId(page, 'sign-request').click()
    await byId(page, 'key-ready').waitFor({ timeout: PATIENCE_MS })
    const [row] = await panel.locator('tbody tr').allTextContents()
    const expires = new Date(Date.now() + 30 * 86_400_000).getFullYear()
    expect(row).to.contain(String(expires))
    expect(wallet.confirmed.filter((method) => method === 'eth_signTypedData_v4')).to.have.length(1)
  })

  it('when a script reads the database, the wrapping key cannot be exported, and no secret is in clear text', async () => {
    const entries = await page.evaluate<readonly Entry[]>(READ_VAULT)
    expect(entries.filter(({ isKey }) => isKey)).to.have.length(1)
    for (const { name, isReadable, text } of entries) {
      expect(isReadable, name).to.equal(false)
      expect(text, name).not.to.match(/privateKey|authorization|Bearer/)
    }
    const stored = await page.evaluate<string>('JSON.stringify({ ...localStorage, ...sessionStorage })')
    expect(stored).not.to.match(/Bearer|0x[0-9a-f]{64}/)
  })

  it('when there is no input for the time of the idle lock, the key is locked, and one click unlocks it', async () => {
    await page.evaluate<void>(`localStorage.setItem('clearbatch.settings', '{"idleLockMinutes":0.02}')`)
    await page.reload()
    await page.getByText('The key of this browser is locked.').waitFor({ timeout: PATIENCE_MS })
    await page.evaluate<void>(`localStorage.removeItem('clearbatch.settings')`)
    await page.reload()
    await byId(page, 'key-ready').waitFor({ timeout: PATIENCE_MS })
  })

  it('when the account has limits, they are listed with what remains', async () => {
    const rows = page.getByLabel('Limits, scrollable').locator('tbody tr')
    await rows.first().waitFor({ timeout: PATIENCE_MS })
    for (const text of await rows.allTextContents()) expect(text).to.match(/[\d,]+[\d,]+\d+ s$/)
  })

  it('when the key is forgotten, it is gone from the database, and the page offers to register another one', async () => {
    await page.getByRole('button', { name: 'Forget the key' }).click()
    await byId(page, 'register-key').waitFor({ timeout: PATIENCE_MS })
    const names = (await page.evaluate<readonly Entry[]>(READ_VAULT)).map(({ name }) => name)
    expect(names.filter((name) => name.startsWith('session-key'))).to.deep.equal([])
    expect(watched.faults).to.deep.equal([])
  })
})
