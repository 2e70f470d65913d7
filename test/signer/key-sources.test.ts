/** The signer's process with its key in a keystore and in a remote signer: it signs as with a plain key, and logs no secret. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { encryptKeystoreJsonSync, id, Wallet } from 'ethers'
import { after, afterEach, before, describe, it } from 'mocha'
import { type FeedId, reportHasher, signerOf } from '../../domain/prices/report-hash.ts'
import type { Address, Millis } from '../../domain/units.ts'
import { createRemoteSigner } from '../../keeper/adapters/report-signers.ts'
import { keccak, recover } from '../../service/crypto.ts'
import { freePort } from '../../stack/ports.ts'
import { until } from '../keeper/support/keeper-process.ts'
import { type SignerServer, startSignerServer } from '../service/support/signer-server.ts'
import { e18 } from '../support/markets.ts'

const KEY = id('signer of reports')
const ADDRESS = new Wallet(KEY).address.toLowerCase() as Address
const SECRET = 'the secret of the publishers'
const PASSPHRASE = 'a passphrase that no log may contain'
const FEED = id('feed') as FeedId
const domain = { chainId: 6343n, oracle: `0x${'0a'.repeat(20)}` as Address }

describe('the key sources of the signer process', function () {
  this.timeout(60_000)
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-signer-sources-'))
  const at = (name: string): string => join(folder, name)
  let remote: SignerServer
  let child: ChildProcess | null = null
  let output = ''
  before(async () => {
    remote = await startSignerServer([KEY])
    const account = { address: ADDRESS, privateKey: KEY }
    writeFileSync(
      at('keystore.json'),
      encryptKeystoreJsonSync(account, PASSPHRASE, { scrypt: { N: 1024, r: 8, p: 1 } }),
    )
    writeFileSync(at('passphrase'), PASSPHRASE)
    writeFileSync(at('remote.json'), JSON.stringify({ remote: ADDRESS }))
    writeFileSync(
      at('feeds.json'),
      JSON.stringify({ feeds: [{ feed_id: FEED, low: '1', max_age_ms: 60_000 }] }),
    )
  })
  afterEach(async () => {
    if (child?.exitCode === null) {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    for (const secret of [KEY.slice(2), PASSPHRASE, SECRET]) expect(output).to.not.include(secret)
  })
  after(async () => {
    await remote.close()
    rmSync(folder, { recursive: true })
  })

  /** Starts the signer; returns what a publisher asks with. */
  async function start(keyFile: string) {
    const [port, internal] = [await freePort(), await freePort()]
    output = ''
    const started = spawn(process.execPath, ['signer/main.ts'], {
      env: {
        PATH: process.env.PATH,
        SIGNER_KEY_FILE: at(keyFile),
        KEY_PASSPHRASE_FILE: at('passphrase'),
        REMOTE_SIGNER_URL: remote.url,
        SIGNER_SECRET: SECRET,
        SIGNER_FEEDS_FILE: at('feeds.json'),
        CHAIN_ID: '6343',
        ADDRESS_ORACLE: domain.oracle,
        PORT: `${port}`,
        INTERNAL_PORT: `${internal}`,
        LOG_LEVEL: 'trace',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child = started
    for (const stream of [started.stdout, started.stderr])
      stream.on('data', (data) => {
        output += data
      })
    await until(
      async () => output.includes('signer started'),
      () => output,
    )
    const url = `http://127.0.0.1:${port}`
    return createRemoteSigner({ name: 'one', url, address: ADDRESS, secret: SECRET })
  }
  const digestOf = reportHasher(domain, keccak)
  const readingNow = () => ({ price: e18('2'), observedAt: (Date.now() + 1_500) as Millis })

  for (const keyFile of ['keystore.json', 'remote.json']) {
    it(`when its key file is ${keyFile}, its signatures recover to the key's address`, async () => {
      const signer = await start(keyFile)
      await until(
        async () => {
          const reading = readingNow()
          const [answer] = await signer.sign([{ feedId: FEED, reading }], 30_000)
          // Just after its start it refuses times for which an earlier process may have signed.
          if (answer === undefined || 'refusal' in answer) return false
          expect(signerOf(digestOf(FEED, reading), answer.signature, recover)).to.equal(ADDRESS)
          return true
        },
        () => output,
      )
      expect(output).to.include(
        keyFile === 'remote.json' ? `"key":"remote signer ${remote.url}"` : '"key":"keystore ',
      )
    })
  }

  it('when the remote signer fails, the publisher gets no signature, the log names the URL, and signing continues afterwards', async () => {
    const signer = await start('remote.json')
    const sign = () => signer.sign([{ feedId: FEED, reading: readingNow() }], 30_000)
    remote.fault = 'other-key'
    await until(async () => {
      const result = await sign().catch((error: Error) => error)
      if (result instanceof Error) expect(result.message).to.equal('signer one answered with status 500')
      return result instanceof Error
    })
    expect(output).to.include(`remote signer ${remote.url} returned a signature that is not of ${ADDRESS}`)
    remote.fault = null
    await until(async () => 'signature' in ((await sign())[0] ?? {}))
  })
})
