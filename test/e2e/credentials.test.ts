import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { getBytes, Wallet } from 'ethers'
import { decodeJwt } from 'jose'
import { after, before, describe, it } from 'mocha'
import { rotateApiKey } from '../../client/api-keys.ts'
import { ClearbatchError } from '../../client/errors.ts'
import { createHttpSession } from '../../client/http-session.ts'
import { signIn } from '../../client/sign-in.ts'
import { waitFor } from '../support/patience.ts'
import { Browser } from './support/browser.ts'
import { useStack } from './support/stack.ts'

interface Me {
  readonly user_id: number
  readonly address: string
  readonly scope: string
  readonly credential: string
  readonly api_key: { readonly prefix: string } | null
}

describe('credentials on the complete stack', function () {
  this.timeout(60_000)
  const { LOG_LEVEL } = process.env
  before(() => {
    process.env.LOG_LEVEL = 'debug'
  })
  const test = useStack()
  after(() => {
    if (LOG_LEVEL === undefined) delete process.env.LOG_LEVEL
    else process.env.LOG_LEVEL = LOG_LEVEL
  })
  /** What the tests have used, to be searched in the logs. */
  const secrets: string[] = []

  const session = (authorization: string) => {
    secrets.push(authorization.replace(/^\w+ /, ''))
    return createHttpSession({ baseUrl: test.stack.file.base_url, authorization })
  }
  const me = (authorization: string): Promise<Me> => session(authorization).get<Me>('/v0/me')
  const refusal = async (work: Promise<unknown>): Promise<ClearbatchError> => {
    const error = await work.then(
      () => null,
      (refused: unknown) => refused,
    )
    expect(error).to.be.instanceOf(ClearbatchError)
    return error as ClearbatchError
  }
  const login = (wallet: { address: string; signMessage(message: string): Promise<string> }) =>
    signIn({ issuerUrl: test.stack.file.issuer_url, wallet })

  it('when a new wallet signs in at the identity provider, its first key comes from a signed challenge, and each rotation ends the key before', async () => {
    const { base_url: baseUrl, issuer_url } = test.stack.file
    const wallet = Wallet.createRandom()
    const { accessToken, expiresAt } = await login(wallet)
    const address = wallet.address.toLowerCase()
    expect(decodeJwt(accessToken)).to.include({ iss: issuer_url, wallet_address: address })
    expect(expiresAt - Date.now()).to.be.within(3_500_000, 3_600_000)
    const bearer = `Bearer ${accessToken}`
    expect(await me(bearer)).to.include({ address, api_key: null, credential: 'identity_token' })

    const first = await rotateApiKey({ baseUrl, authorization: bearer, wallet })
    expect(await me(`Key ${first.api_key}`)).to.include({ address, user_id: first.user_id, scope: 'trade' })
    const second = await rotateApiKey({
      ...{ baseUrl, authorization: `Key ${first.api_key}`, wallet, scope: 'read' },
    })
    expect(await me(`Key ${second.api_key}`)).to.include({ scope: 'read', user_id: first.user_id })
    expect((await refusal(me(`Key ${first.api_key}`))).code).to.equal('API_KEY_UNKNOWN')
    const rotation = rotateApiKey({ baseUrl, authorization: `Key ${second.api_key}`, wallet })
    expect((await refusal(rotation)).code).to.equal('READ_ONLY_KEY')
  })

  it('when another wallet signs, the identity provider and the exchange refuse it', async () => {
    const [owner, thief] = [Wallet.createRandom(), Wallet.createRandom()]
    const forged = { address: owner.address, signMessage: (text: string) => thief.signMessage(text) }
    expect((await refusal(login(forged))).code).to.equal('SIGNATURE_REFUSED')
    const { accessToken } = await login(owner)
    const rotation = rotateApiKey({
      ...{ baseUrl: test.stack.file.base_url, authorization: `Bearer ${accessToken}`, wallet: forged },
    })
    expect((await refusal(rotation)).code).to.equal('WALLET_SIGNATURE_MISMATCH')
  })

  it('when the text is changed or signed for another sign-in, the identity provider refuses it', async () => {
    const wallet = Wallet.createRandom()
    let earlier = ''
    const keep = async (text: string): Promise<string> => {
      earlier = await wallet.signMessage(text)
      return earlier
    }
    await login({ address: wallet.address, signMessage: keep })
    const replay = { address: wallet.address, signMessage: async () => earlier }
    expect((await refusal(login(replay))).code).to.equal('SIGNATURE_REFUSED')
  })

  it('when a contract wallet accepts the signature (EIP-1271), it signs in and creates its key', async () => {
    const address = Wallet.createRandom().address
    // Accepts every signature whose first byte is 2a.
    const code = '0x60643560001a602a14631626ba7e60e01b0260005260206000f3'
    await test.stack.provider.send('anvil_setCode', [address, code])
    const wallet = { address, signMessage: async () => `0x2a${'11'.repeat(129)}` }
    const { accessToken } = await login(wallet)
    const authorization = `Bearer ${accessToken}`
    const { api_key } = await rotateApiKey({ baseUrl: test.stack.file.base_url, authorization, wallet })
    expect((await me(`Key ${api_key}`)).address).to.equal(address.toLowerCase())
  })

  it('when the identity provider restarts, its tokens stay valid and wallets sign in again', async () => {
    const wallet = Wallet.createRandom()
    const { accessToken } = await login(wallet)
    await test.stack.issuer.restart('SIGKILL')
    await test.stack.issuer.ready()
    expect((await me(`Bearer ${accessToken}`)).address).to.equal(wallet.address.toLowerCase())
    expect((await me(`Bearer ${(await login(wallet)).accessToken}`)).api_key).to.equal(null)
  })

  it('when a person opens the identity provider, the pages run only their own script and cannot be framed', async () => {
    const issuer = test.stack.file.issuer_url
    const query = new URLSearchParams({
      ...{ client_id: 'clearbatch', response_type: 'code', scope: 'openid', code_challenge: 'x'.repeat(43) },
      ...{ code_challenge_method: 'S256', redirect_uri: `${issuer}/signed-in`, state: 'state' },
    })
    const started = await fetch(`${issuer}/auth?${query}`, { redirect: 'manual' })
    const cookie = started.headers.getSetCookie().map((line) => line.split(';')[0])
    const interaction = new URL(started.headers.get('location') ?? '', issuer)
    for (const url of [new URL('/', issuer), interaction]) {
      const page = await fetch(url, { headers: { cookie: cookie.join('; ') } })
      const html = await page.text()
      expect(page.status, html).to.equal(200)
      expect(page.headers.get('content-security-policy')).to.match(
        /^default-src 'none'; .*script-src 'nonce-[\w-]+'; .*frame-ancestors 'none'$/,
      )
      expect(html).to.include('<html lang="en">').and.to.include('role="status"').and.to.include('<button')
    }
    const foreign = await fetch(interaction)
    const { details } = (await foreign.json()) as { details: { code: string } }
    expect([foreign.status, details.code]).to.deep.equal([400, 'INTERACTION_UNKNOWN'])
    query.delete('code_challenge')
    const unproven = await fetch(`${issuer}/auth?${query}`, { redirect: 'manual' })
    expect(unproven.headers.get('location')).to.include('error=invalid_request')
  })
  it("when a person signs in with the browser's wallet, the pages show and copy a token that the exchange accepts", async () => {
    const wallet = Wallet.createRandom()
    const request = async ({ method, params = [] }: { method: string; params?: readonly unknown[] }) =>
      method === 'personal_sign' ? wallet.signMessage(getBytes(String(params[0]))) : [wallet.address]
    const browser = new Browser(test.stack.file.issuer_url, { request })
    await browser.open('/')
    expect(browser.page.getElementById('copy')?.disabled).to.equal(true)
    browser.page.click('start')
    await waitFor(
      async () => browser.page.url.pathname,
      (path) => path.startsWith('/interaction/'),
    )
    browser.page.click('sign')
    const token = await waitFor(
      async () => browser.page.text('token'),
      (text) => text !== '',
    )
    expect(browser.page.text('status')).to.equal('Signed in.')
    expect(await me(`Bearer ${token}`)).to.include({ address: wallet.address.toLowerCase() })
    browser.page.click('copy')
    await waitFor(
      async () => browser.page.text('status'),
      (status) => status === 'Copied.',
    )
    expect(browser.clipboard).to.equal(token)
  })

  it('when the browser has no wallet, or its person refuses to sign, the page says so and can be tried again', async () => {
    const signInWith = async (browser: Browser): Promise<Browser> => {
      await browser.open('/')
      browser.page.click('start')
      await waitFor(
        async () => browser.page.url.pathname,
        (path) => path.startsWith('/interaction/'),
      )
      browser.page.click('sign')
      return browser
    }
    const status = (browser: Browser) =>
      waitFor(
        async () => browser.page.text('status'),
        (text) => text.startsWith('Not') || text.startsWith('This'),
      )
    const issuer = test.stack.file.issuer_url
    const bare = await signInWith(new Browser(issuer))
    expect(await status(bare)).to.match(/^This browser has no wallet\./)
    const address = Wallet.createRandom().address
    const request = async ({ method }: { method: string }) => {
      if (method === 'personal_sign') throw new Error('the user rejected the request')
      return [address]
    }
    const refusing = await signInWith(new Browser(issuer, { request }))
    expect(await status(refusing)).to.equal('Not signed in: the user rejected the request')
    expect(refusing.page.text('text')).to.include(address)
    expect(refusing.page.getElementById('sign')?.disabled).to.equal(false)
  })

  it('when all processes log everything, no log contains a credential of a person or of a process', async () => {
    await test.trader(0).orders.cancelAll()
    const { keys, file, pricesFile, databaseUrls } = test.stack
    const { deployer, faucet, heartbeat, adjust, ending, relay, oracle, phrase } = keys
    const processes = [deployer, faucet, heartbeat, adjust, ending, relay, oracle, keys.relayer(1)]
    const passwords = Object.values(databaseUrls).map((url) => new URL(url).password)
    const all = [
      ...[...secrets, phrase, ...processes.map(({ privateKey }) => privateKey.slice(2))],
      ...file.accounts.flatMap(({ api_key, private_key }) => [api_key, private_key.slice(2)]),
      ...passwords.filter((password) => password.length > 8),
    ]
    expect(secrets.length).to.be.at.least(8)
    const folder = join(dirname(pricesFile), 'logs')
    const logs = readdirSync(folder)
    expect(logs).to.include.members(['api.log', 'engine.log', 'keeper.log', 'indexer.log', 'issuer.log'])
    // The stack copies what a process prints into its log: the lines of the cancel may come after the answer.
    for (const [name, line] of [
      ['api.log', 'command stored by the engine'],
      ['engine.log', 'decided'],
      ['indexer.log', 'block recorded'],
    ] as const)
      await waitFor(
        async () => readFileSync(join(folder, name), 'utf8'),
        (text) => text.includes(line),
      )
    for (const name of logs) {
      const text = readFileSync(join(folder, name), 'utf8')
      const found = all.filter((each) => text.includes(each)).length
      expect(found, `credentials in ${name}`).to.equal(0)
    }
  })
})
