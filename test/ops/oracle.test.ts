/** The commands of `clearbatch ops oracle …` on a chain and a database of their own: reports stay valid through a rotation of a signer. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { encryptKeystoreJsonSync, HDNodeWallet, id, Wallet } from 'ethers'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { type FeedId, reportHasher } from '../../domain/prices/report-hash.ts'
import type { Address, Millis } from '../../domain/units.ts'
import { createQuorum } from '../../keeper/prices/quorum.ts'
import { createSignerSets } from '../../keeper/prices/signer-sets.ts'
import { keccak, recover } from '../../service/crypto.ts'
import { type KeySource, plainKey } from '../../service/keys/key-source.ts'
import { createRemoteSigner } from '../../service/keys/remote-signer.ts'
import { createReportKey, type SigningRequest } from '../../service/report-key.ts'
import { feedIdOf } from '../../stack/deploy.ts'
import { SignedPriceOracle__factory } from '../../typechain-types/factories/SignedPriceOracle__factory.ts'
import { NO_PRICE_METRICS } from '../keeper/prices/publisher-fixture.ts'
import { ChainFixture, useChain } from '../keeper/support/chain-fixture.ts'
import { SILENT_LOGGER } from '../keeper/support/market-fixture.ts'
import { type SignerServer, startSignerServer } from '../service/support/signer-server.ts'
import { e18, perpetual } from '../support/markets.ts'
import { captureOps } from './support/captured-ops.ts'

const CHAIN_ID = 6343n
const KEY = HDNodeWallet.fromPhrase('test test test test test test test test test test test junk').privateKey
const DAY_S = 86_400
const addressOf = (key: string): Address => new Wallet(key).address.toLowerCase() as Address
/** The fixture's oracle has this signer. */
const OLD = id('oracle')
const NEW = id('new oracle signer')
const [FROM, TO, STRANGER] = [OLD, NEW, id('stranger')].map(addressOf) as [Address, Address, Address]

describe('clearbatch ops oracle', function () {
  this.timeout(300_000)
  const chain = useChain(perpetual)
  let fixture: ChainFixture
  let signer: SignerServer
  before(async () => {
    signer = await startSignerServer([NEW])
  })
  after(() => signer.close())
  beforeEach(async () => {
    fixture = await ChainFixture.openOn(chain())
    await fixture.follow()
  })
  afterEach(() => fixture.close())

  const ops = async (...args: readonly string[]) => {
    const urls = { RPC_URL: chain().anvil.url, DATABASE_URL: fixture.url }
    const result = await captureOps(['oracle', ...args], { ...urls, OPS_KEY: KEY })
    expect(result.stdout + result.stderr).to.not.include(KEY.slice(2))
    return result
  }
  const rotation = (...more: readonly string[]) => ops('rotate', '--from', FROM, '--to', TO, ...more)
  const oracle = () =>
    SignedPriceOracle__factory.connect(chain().shared.oracle, { provider: chain().provider })
  const feedId = (): FeedId => feedIdOf(fixture.spec.marketId) as FeedId
  const signersAt = async (at: number): Promise<string[]> =>
    (await oracle().feedAt(feedId(), at)).signers.map((each) => each.toLowerCase())
  const headTime = async (): Promise<number> =>
    ((await chain().provider.getBlock('latest'))?.timestamp ?? 0) * 1000

  /** The oracle of the chain becomes one with a notice of a day: the notice is in a contract's code. */
  async function giveNotice(): Promise<void> {
    const { admin, provider, shared } = chain()
    const access = await oracle().authority()
    const other = await new SignedPriceOracle__factory(admin).deploy(access, DAY_S)
    await other.waitForDeployment()
    const code = await provider.getCode(await other.getAddress())
    await provider.send('anvil_setCode', [shared.oracle, code])
  }

  /** A publisher of reports whose signers are the old key in memory and the new one in a remote signer, at the time of the chain's head. */
  function publisher() {
    const domain = { chainId: CHAIN_ID, oracle: chain().shared.oracle }
    const clock = { now: () => now as Millis }
    let now = 0
    const remote = createRemoteSigner({ url: signer.url, timeoutMs: 30_000, tls: {} }).key(TO)
    const reportKey = (key: KeySource) =>
      createReportKey({ key, domain, clock, after: 0 as Millis, rulesOf: () => RULES })
    const keys = [plainKey(OLD), remote].map(reportKey)
    const sets = createSignerSets({
      clock,
      logger: SILENT_LOGGER,
      async read(feed, at) {
        const { signers, threshold } = await oracle().feedAt(feed, at)
        const addresses = signers.map((each) => each.toLowerCase() as Address)
        return { signers: new Set(addresses), threshold: Number(threshold) }
      },
    })
    const quorum = createQuorum({
      clock,
      recover,
      logger: SILENT_LOGGER,
      metrics: NO_PRICE_METRICS,
      deadlineMs: 30_000,
      setOf: sets.at,
      digestOf: reportHasher(domain, keccak),
      signers: keys.map(({ address, sign }) => ({
        name: address,
        address,
        sign: (all: readonly SigningRequest[]) => sign(all),
      })),
    })
    /** Publishes a report of now; the contract has verified it. */
    return async (): Promise<string> => {
      now = await headTime()
      await sets.refresh([feedId()])
      const reading = { price: e18('50000'), observedAt: now as Millis }
      const [outcome] = await quorum.collect([{ feedId: feedId(), reading }])
      const proof = outcome?.proof
      if (typeof proof !== 'string') throw new Error(`not signed: ${JSON.stringify(outcome)}`)
      await oracle().verify(feedId(), reading.price, now, proof)
      return proof
    }
  }
  const pass = async (seconds: number): Promise<void> => {
    await chain().provider.send('evm_increaseTime', [seconds])
    await chain().provider.send('evm_mine', [])
  }

  it('when a signer is rotated with a notice of a day, the old signer signs until then and the new one, of a remote signer, from then on', async () => {
    await giveNotice()
    const publish = publisher()
    const before = await publish()
    const dry = await rotation()
    expect([dry.code, dry.stderr]).to.deep.equal([0, ''])
    expect(dry.stdout)
      .to.include('setFeed(bytes32,address[],uint256)')
      .and.to.include(`1 of 1: ${FROM}`)
      .and.to.include(`1 of 1: ${TO}`)
    expect(await signersAt(2 ** 47)).to.deep.equal([FROM])

    const sent = await rotation('--send')
    expect([sent.code, sent.stderr]).to.deep.equal([0, ''])
    expect(sent.stdout).to.match(/mined\n$/)
    expect([await signersAt(await headTime()), await signersAt(2 ** 47)]).to.deep.equal([[FROM], [TO]])
    expect((await ops('show')).stdout)
      .to.match(new RegExp(`now +1 of 1: ${FROM}\\n +then +1 of 1: ${TO}`))
      .and.to.include('notice 1 d')
    await pass(1)
    expect(await publish()).to.not.equal(before)

    await pass(DAY_S + 10)
    expect(await signersAt(await headTime())).to.deep.equal([TO])
    await publish()
    expect((await rotation('--send')).stdout).to.include(`has ${TO} instead already`)
    expect((await ops('show')).stdout).to.not.include('then')
  })

  it('when a rotation is announced, another is refused until the first is cancelled', async () => {
    await giveNotice()
    expect((await ops('cancel', '--send')).stderr).to.include('no change of signers is announced')
    expect((await rotation('--send')).code).to.equal(0)
    const other = await ops('rotate', '--from', FROM, '--to', STRANGER, '--send')
    expect([other.code, other.stdout]).to.deep.equal([1, ''])
    expect(other.stderr).to.include(`has an announced change to 1 of 1: ${TO}`)
    expect((await ops('cancel', '--send')).stdout).to.match(/mined\n$/)
    expect(await signersAt(2 ** 47)).to.deep.equal([FROM])
    expect((await ops('rotate', '--from', FROM, '--to', STRANGER, '--send')).code).to.equal(0)
    expect(await signersAt(2 ** 47)).to.deep.equal([STRANGER])
  })

  it('when the key is in a keystore with its password in a file, the command acts as that key; a wrong password is named by its variable', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'clearbatch-ops-'))
    const [keystore, password] = [join(folder, 'keystore.json'), join(folder, 'password')]
    const account = { address: new Wallet(KEY).address, privateKey: KEY }
    writeFileSync(keystore, encryptKeystoreJsonSync(account, 'secret', { scrypt: { N: 1024, r: 8, p: 1 } }))
    const rotate = (text: string) => {
      writeFileSync(password, text)
      const urls = { RPC_URL: chain().anvil.url, DATABASE_URL: fixture.url }
      const env = { ...urls, OPS_KEYSTORE: keystore, OPS_KEYSTORE_PASSWORD_FILE: password }
      return captureOps(['oracle', 'rotate', '--from', FROM, '--to', TO], env)
    }
    expect((await rotate('secret\n')).stdout).to.include(`${account.address}\n`)
    expect((await rotate('other')).stderr).to.include(
      `OPS_KEYSTORE names ${keystore}, which OPS_KEYSTORE_PASSWORD_FILE does not decrypt`,
    )
    rmSync(folder, { recursive: true })
  })

  it('when an address or a feed is wrong, the command names flag, received and valid, and sends nothing', async () => {
    for (const [args, problem] of [
      [
        ['--from', '0x12', '--to', TO],
        '--from must be an address: 0x and 40 hexadecimal digits, not all 0; received 0x12',
      ],
      [['--from', FROM, '--to', `0x${'0'.repeat(40)}`], '--to must be an address'],
      [['--from', FROM, '--to', FROM], '--to must be another address than --from'],
      [['--from', STRANGER, '--to', TO], `--from must be a signer of a feed; received ${STRANGER}`],
      [['--from', FROM, '--to', TO, '--feed', '0x12'], '--feed must be one of 0x'],
    ] as const) {
      const { code, stdout, stderr } = await ops('rotate', ...args, '--send')
      expect([code, stdout]).to.deep.equal([1, ''])
      expect(stderr).to.include(problem)
    }
    expect(await signersAt(2 ** 47)).to.deep.equal([FROM])
  })
})

const RULES = {
  range: { low: 0n, high: 2n ** 127n },
  maxAge: 5_000 as Millis,
  maxAhead: 2_000 as Millis,
  move: null,
}
