/** Keys in a remote signer, against a server of web3signer's published interface that can fail and lie. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { id, keccak256, recoverAddress, Transaction, Wallet } from 'ethers'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { toHex } from '../../../domain/hex.ts'
import { reportPreimage } from '../../../domain/prices/report-hash.ts'
import type { Address, Millis } from '../../../domain/units.ts'
import { createSigner } from '../../../keeper/adapters/chain.ts'
import { keccak } from '../../../service/crypto.ts'
import { type KeySource, KeySourceError, plainKey } from '../../../service/keys/key-source.ts'
import { createRemoteSigner } from '../../../service/keys/remote-signer.ts'
import { type SignerFault, type SignerServer, startSignerServer } from '../support/signer-server.ts'

const KEY = id('remote')
const ADDRESS = new Wallet(KEY).address.toLowerCase() as Address
const FEE = { maxFeePerGas: 10n, maxPriorityFeePerGas: 1n }
const CALL = { to: `0x${'ab'.repeat(20)}` as Address, data: '0x1234' as const, value: 0n, gas: 21_000n }

const failureOf = async (work: Promise<unknown>): Promise<Error> =>
  work.then(
    () => new Error('it did not fail'),
    (error: Error) => error,
  )

describe('a key in a remote signer', () => {
  let server: SignerServer
  beforeEach(async () => {
    server = await startSignerServer([id('neighbour'), KEY])
  })
  afterEach(() => server.close())

  const source = (timeoutMs = 10_000, url = server.url): KeySource =>
    createRemoteSigner({ url, timeoutMs, tls: {} }).key(ADDRESS)
  const signTransaction = (timeoutMs?: number) => createSigner(6343, source(timeoutMs)).sign(CALL, 3, FEE)

  it('when it signs a transaction, the bytes are those that the plain key produces, and the key is looked up once', async () => {
    const signer = createSigner(6343, source())
    const local = createSigner(6343, plainKey(KEY))
    for (const nonce of [3, 4])
      expect(await signer.sign(CALL, nonce, FEE)).to.deep.equal(await local.sign(CALL, nonce, FEE))
    expect(server.requests.filter((path) => path.endsWith('publicKeys'))).to.have.length(1)
  })

  it('when it signs a report, it is sent 66 bytes of EIP-712 whose hash the signature is of', async () => {
    const domain = { chainId: 6343n, oracle: `0x${'0a'.repeat(20)}` as Address }
    const feedId = id('feed') as `0x${string}`
    const preimage = reportPreimage(domain, keccak)(feedId, { price: 5n, observedAt: 7 as Millis })
    expect(preimage).to.have.length(66)
    const signature = toHex(await source().sign(preimage))
    expect(recoverAddress(keccak256(preimage), signature).toLowerCase()).to.equal(ADDRESS)
  })

  for (const [fault, problem] of [
    ['other-key', 'returned a signature that is not of'],
    ['other-chain', 'returned a signature that is not of'],
    ['malleable', 'returned a malleable signature'],
    ['wrong-v', 'with v 37: expected 27 or 28'],
    ['garbage', 'returned no signature'],
    ['huge', 'with more than 1000000 bytes'],
  ] as const satisfies readonly (readonly [SignerFault, string])[]) {
    it(`when it answers with ${fault}, the transaction is not signed, the error names the URL, and it is not asked again`, async () => {
      server.fault = fault
      const failure = await failureOf(signTransaction())
      expect(failure).to.be.instanceOf(KeySourceError)
      expect(failure.message).to.include(`remote signer ${server.url} `).and.to.include(problem)
      expect(server.requests.filter((path) => path.includes('/sign/'))).to.have.length(1)
    })
  }

  it('when it fails twice, the error names the status; when once, the request is repeated', async () => {
    server.fault = 'status-500'
    expect((await failureOf(signTransaction())).message).to.match(
      /answered a request to sign for 0x\w{40} with status 500$/,
    )
    server.faults = 1
    const { raw } = await signTransaction()
    expect(Transaction.from(raw).from?.toLowerCase()).to.equal(ADDRESS)
  })

  it('when it hangs, each of two attempts ends at the bound', async () => {
    server.fault = 'hang'
    const failure = await failureOf(signTransaction(1_000))
    expect(failure.message).to.match(/did not answer \/api\/v1\/eth1\/sign\/0x\w+ within 1000 ms$/)
    expect(server.requests.filter((path) => path.includes('/sign/'))).to.have.length(2)
  })

  it('when nothing listens, or the key is not there, it is not ready and says why', async () => {
    await source().ready()
    const { key } = createRemoteSigner({ url: server.url, timeoutMs: 10_000, tls: {} })
    const stranger = new Wallet(id('stranger')).address.toLowerCase() as Address
    expect((await failureOf(key(stranger).ready())).message).to.equal(
      `remote signer ${server.url} does not have the key ${stranger}`,
    )
    await server.close()
    expect((await failureOf(source().ready())).message).to.equal(
      `remote signer ${server.url} cannot be reached: ECONNREFUSED`,
    )
  })

  it('when its URL has a user and a password, they are sent and in no message', async () => {
    const url = server.url.replace('://', '://keeper:pass%20word@')
    await source(10_000, url).ready()
    expect(server.authorizations).to.include(`Basic ${Buffer.from('keeper:pass word').toString('base64')}`)
    server.fault = 'garbage'
    const own = source(10_000, url)
    expect(own.place).to.equal(`remote signer ${server.url}`)
    expect((await failureOf(own.sign(new Uint8Array(66)))).message).to.not.match(/keeper|pass/)
  })
})

describe('a key in a remote signer behind TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-tls-'))
  const file = (name: string): string => readFileSync(join(folder, name), 'utf8')
  let server: SignerServer
  before(async () => {
    const make = (name: string): void => {
      const args = ['-keyout', join(folder, `${name}.key`), '-out', join(folder, `${name}.pem`), '-days', '2']
      const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1']
      execFileSync(
        'openssl',
        [
          'req',
          '-x509',
          '-newkey',
          'ec',
          '-pkeyopt',
          'ec_paramgen_curve:P-256',
          '-nodes',
          ...args,
          ...subject,
        ],
        { stdio: 'ignore' },
      )
    }
    for (const name of ['server', 'client']) make(name)
    const tls = { cert: file('server.pem'), key: file('server.key'), ca: file('client.pem') }
    server = await startSignerServer([KEY], { ...tls, requestCert: true, rejectUnauthorized: true })
  })
  after(async () => {
    await server.close()
    rmSync(folder, { recursive: true })
  })

  const source = (tls: object): KeySource =>
    createRemoteSigner({ url: server.url, timeoutMs: 10_000, tls }).key(ADDRESS)

  it('when both sides have the certificates, it signs; without either certificate the connection fails before a request', async () => {
    const client = { cert: file('client.pem'), key: file('client.key') }
    const signature = await source({ ca: file('server.pem'), ...client }).sign(Uint8Array.of(1))
    expect(recoverAddress(keccak256('0x01'), toHex(signature)).toLowerCase()).to.equal(ADDRESS)
    const before = server.requests.length
    for (const tls of [client, { ca: file('server.pem') }])
      expect((await failureOf(source(tls).ready())).message).to.include(
        `remote signer ${server.url} cannot be reached: `,
      )
    expect(server.requests).to.have.length(before)
  })
})
