import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { id, Wallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { FAUCET_ERRORS } from '../../db/faucet-requests.ts'
import { chooseRelayer } from '../../db/relayers.ts'
import type { Address } from '../../domain/units.ts'
import { future, perpetual, rate } from '../support/markets.ts'
import { listMarket } from '../support/rows/markets.ts'
import { registerRelayer } from '../support/rows/relayers.ts'
import { applySetting } from '../support/settings.ts'
import {
  adjustKey,
  ChainFixture,
  faucetKey,
  foreignTransaction,
  laneKey,
  useChain,
} from './support/chain-fixture.ts'
import { type KeeperProcess, systemClockWrongBy, until } from './support/keeper-process.ts'
import { Keepers } from './support/keepers.ts'
import type { Trader } from './support/market-fixture.ts'

/** The interval at which the keeper looks for new markets. */
const MARKET_POLL_MS = 300

describe('the keeper process', function () {
  this.timeout(90_000)
  // Without funding, the keeper's transactions are those of the batches alone.
  const chain = useChain({ ...perpetual, fundingCap: rate('0') })
  let keepers: Keepers
  let fixture: ChainFixture
  let alice: Trader

  beforeEach(async () => {
    keepers = await Keepers.on(await ChainFixture.openOn(chain()))
    ;({ fixture, alice } = keepers)
  })
  afterEach(() => keepers.close())

  for (const point of ['after-signing', 'after-broadcast']) {
    it(`when it is killed ${point}, its successor settles every fill once`, async () => {
      await keepers.cross(20)
      const victim = await keepers.start({ CLEARBATCH_KILL_AT: point })
      expect(await victim.ended()).to.deep.equal([null, 'SIGKILL'])
      const before = (await fixture.transactions()).map(({ tx_hash }) => tx_hash)

      await fixture.report(1000)
      // On a loaded machine the successor starts later than the default, and would replace the transaction.
      const successor = await keepers.start({ STUCK_AFTER_MS: '30000' })
      await keepers.untilHeld(20, successor)
      const hashes = (await fixture.transactions()).map(({ tx_hash }) => tx_hash)
      expect(hashes).to.have.length(1)
      expect(hashes).to.deep.equal(before)
      expect(await chain().provider.getTransactionCount(fixture.lane.relayer)).to.equal(1)
    })
  }

  it('when every notification of a batch is lost, it settles by its sweep', async () => {
    const keeper = await keepers.startReady()
    await until(async () => (await leased('settle:m1')) !== undefined)
    await keepers.cross(20)
    await keepers.untilHeld(20, keeper)
  })

  const leased = (name: string) =>
    fixture.db.selectFrom('leases').select('token').where('name', '=', name).executeTakeFirst()

  it('when a market is listed before its relayer key exists, it starts once the key is in the file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'clearbatch-keys-'))
    const file = join(folder, 'keys.json')
    const store = (keys: object): void => writeFileSync(file, JSON.stringify(keys))
    store({ m1: laneKey })
    const keeper = await keepers.startReady({
      RELAYER_KEYS: '',
      RELAYER_KEYS_FILE: file,
      MARKET_POLL_MS: `${MARKET_POLL_MS}`,
    })
    await listMarket(fixture.db, future)
    const checks = async (): Promise<Record<string, unknown>> => {
      const body = (await (await fetch(`${keeper.url}/health/ready`)).json()) as Record<string, never>
      return body.checks ?? {}
    }
    await until(async () => (await checks()).markets === 'market_not_started')
    await keepers.cross(20)
    await keepers.untilHeld(20, keeper)

    writeFileSync(file, 'not JSON')
    await new Promise((resolve) => setTimeout(resolve, 3 * MARKET_POLL_MS))
    store({ m1: laneKey, m2: id('lane m2') })
    await until(async () => (await checks()).markets === true)
    await until(
      async () => (await leased('settle:m2')) !== undefined && (await leased('readers:m2')) !== undefined,
    )
    rmSync(folder, { recursive: true })
  })

  it('when two processes run, one settles at a time and the other takes over without a duplicate batch', async () => {
    const first = await keepers.startReady()
    const second = await keepers.startReady()
    await keepers.cross(10)
    await keepers.untilHeld(10, first)
    const [owner] = await fixture.db
      .selectFrom('leases')
      .selectAll()
      .where('name', '=', 'settle:m1')
      .execute()
    expect(owner?.token).to.equal(1)
    expect(await first.kill('SIGTERM')).to.deep.equal([0, null])
    await keepers.cross(15)
    await keepers.untilHeld(25, second)
    const batches = await fixture.db.selectFrom('batches').select('batch_id').orderBy('batch_id').execute()
    expect(batches.map(({ batch_id }) => batch_id)).to.deep.equal([1, 2])
  })

  it('when it receives SIGTERM, it drains, releases its leases and exits with 0', async () => {
    const keeper = await keepers.startReady()
    await keepers.cross(20)
    await until(async () => (await fixture.transactions()).length === 1)
    expect(await keeper.kill('SIGTERM')).to.deep.equal([0, null])
    const leases = await fixture.db.selectFrom('leases').select('expires_at').execute()
    expect(leases.map(({ expires_at }) => expires_at)).to.deep.equal(leases.map(() => 0))
    expect((await fixture.transactions())[0]?.status).to.equal('MINED')
    await fixture.follow()
  })

  it('when it runs, it serves health and metrics', async () => {
    const keeper = await keepers.startReady()
    expect((await fetch(`${keeper.url}/health/live`)).status).to.equal(200)
    // Both are read in passes of their own.
    for (const metric of [/^keeper_relayer_balance\{lane="m1"\} (9\d\.|100)/m, /^keeper_chain_block [1-9]/m])
      await until(async () => metric.test(await (await fetch(`${keeper.url}/metrics`)).text()))
    expect((await fetch(`${keeper.url}/nowhere`)).status).to.equal(404)
  })

  const faucetRequest = () => fixture.db.selectFrom('faucet_requests').selectAll().executeTakeFirstOrThrow()

  it('when a faucet request is stored, it pays collateral and gas', async () => {
    const keeper = await keepers.startReady({ FAUCET_COLLATERAL: '5000', FAUCET_GAS: '7000' })
    await keepers.requestFaucet()
    await until(
      async () => (await faucetRequest()).status === 'MINED',
      () => keeper.output,
    )
    const { tx_hash } = await faucetRequest()
    expect((await chain().provider.getTransactionReceipt(tx_hash as string))?.status).to.equal(1)
    await until(async () => (await chain().provider.getBalance(alice.wallet.address)) === 7000n)
  })

  it('when a foreign transaction uses the nonce of a payout, the request fails and the next one is paid', async () => {
    const keeper = await keepers.startReady({ RESEND_AFTER_MS: '200' })
    // A lane that starts compares its nonces with the chain's, and would skip the foreign one.
    await keepers.requestFaucet()
    await until(
      async () => (await faucetRequest()).status === 'MINED',
      () => keeper.output,
    )
    await fixture.db.deleteFrom('faucet_requests').execute()
    const nonce = await chain().provider.getTransactionCount(new Wallet(faucetKey).address)
    await foreignTransaction(chain(), nonce, faucetKey)
    await keepers.requestFaucet()
    await until(
      async () => (await faucetRequest()).status === 'FAILED',
      () => keeper.output,
    )
    expect((await faucetRequest()).error).to.equal('another transaction has used the nonce')
    await fixture.db.deleteFrom('faucet_requests').execute()
    await keepers.requestFaucet()
    await until(
      async () => (await faucetRequest()).status === 'MINED',
      () => keeper.output,
    )
  })

  it('when the key of the faucet has no gas, or the token rejects the payout, requests fail with the reason', async () => {
    const { provider, shared } = chain()
    const faucet = new Wallet(faucetKey).address
    const failure = async (): Promise<string | null> => {
      await fixture.db.deleteFrom('faucet_requests').execute()
      await keepers.requestFaucet()
      await until(
        async () => ['FAILED', 'MINED'].includes((await faucetRequest()).status),
        () => keeper.output,
      )
      return (await faucetRequest()).error
    }
    await provider.send('anvil_setBalance', [faucet, '0x1'])
    const keeper = await keepers.startReady()
    expect(await failure()).to.equal(FAUCET_ERRORS.empty)
    await provider.send('anvil_setBalance', [faucet, '0x56bc75e2d63100000'])
    expect(await failure()).to.equal(null)
    // push 0, push 0, revert.
    await provider.send('anvil_setCode', [shared.usdm, '0x60006000fd'])
    expect(await failure()).to.equal(FAUCET_ERRORS.reverted)
  })

  const checksOf = async (keeper: KeeperProcess): Promise<Record<string, unknown>> =>
    ((await (await fetch(`${keeper.url}/health/ready`)).json()) as { checks: Record<string, unknown> }).checks
  const relayersOfActions = async () => (await fixture.actions()).map(({ relayer }) => relayer)

  it('when an operator chooses another key while it runs, and the former one again, each batch settles once', async () => {
    const keys = JSON.stringify({ m1: [laneKey, adjustKey] })
    const keeper = await keepers.startReady({ RELAYER_KEYS: keys, MARKET_POLL_MS: `${MARKET_POLL_MS}` })
    await keepers.cross(20)
    await keepers.untilHeld(20, keeper)
    let held = 20
    for (const key of [adjustKey, laneKey]) {
      const address = new Wallet(key).address.toLowerCase() as Address
      await chooseRelayer(fixture.db, { lane: 'm1', address, at: Date.now() })
      await until(
        async () => (await presentKey()) === address,
        () => keeper.output,
      )
      await keepers.cross(20)
      held += 20
      await keepers.untilHeld(held, keeper)
    }
    const [first, second] = [laneKey, adjustKey].map((key) => new Wallet(key).address.toLowerCase())
    expect(await relayersOfActions()).to.deep.equal([first, second, first])
    expect(await checksOf(keeper)).to.include({ lanes: true })
  })

  const presentKey = async () =>
    (
      await fixture.db
        .selectFrom('relayers')
        .select('address')
        .where('lane', '=', 'm1')
        .orderBy('registered_at', 'desc')
        .limit(1)
        .executeTakeFirst()
    )?.address

  it('when it is killed with a signed action and restarts with another key alone, the action and the next batch settle once', async () => {
    await keepers.cross(20)
    const victim = await keepers.start({ CLEARBATCH_KILL_AT: 'after-signing' })
    await victim.ended()
    const successor = await keepers.start({
      RELAYER_KEYS: JSON.stringify({ m1: adjustKey }),
      STUCK_AFTER_MS: '30000',
    })
    // A slow start can leave the action no time: its orders return to the book, and match again at a fresh price.
    const untilTraded = (steps: bigint) =>
      until(
        async () => {
          await fixture.report(1000)
          await fixture.auction().run()
          await fixture.follow()
          return (await fixture.position(alice)) === steps
        },
        () => successor.output,
        60_000,
      )
    await untilTraded(20n)
    await keepers.cross(20)
    await untilTraded(40n)
    const [first, second] = [laneKey, adjustKey].map((key) => new Wallet(key).address.toLowerCase())
    expect((await relayersOfActions()).at(0)).to.equal(first)
    expect((await relayersOfActions()).at(-1)).to.equal(second)
  })

  it('when its key is no operator of the market, it is not ready once its actions have only reverted for the stall time', async () => {
    const stranger = id('no operator')
    await chain().provider.send('anvil_setBalance', [new Wallet(stranger).address, '0x56bc75e2d63100000'])
    const keeper = await keepers.startReady({
      RELAYER_KEYS: JSON.stringify({ m1: stranger }),
      LANE_STALL_MS: '1500',
    })
    await until(
      async () => {
        await keepers.cross(20)
        await fixture.follow()
        // Two reverts in a row restrict the market to cancels; then nothing is sent that could revert.
        if ((await fixture.mode()) !== 'open')
          await applySetting(fixture.engine, fixture.spec.marketId, { kind: 'reopen' })
        return (await checksOf(keeper)).lanes === 'lane_stalled'
      },
      () => keeper.output,
      40_000,
    )
  })

  it('when the key belongs to another lane, it is not ready, because its settlement never starts', async () => {
    const relayer = new Wallet(laneKey).address.toLowerCase()
    await registerRelayer(fixture.db, { name: 'm2', relayer, chainId: 6343 }, 0)
    const keeper = await keepers.start({ LANE_STALL_MS: '500' })
    await until(
      async () => (await checksOf(keeper).catch(() => ({ lanes: null }))).lanes === 'lane_stalled',
      () => keeper.output,
    )
    expect(keeper.output).to.include('belongs to lane m2: give lane m1 a key of its own')
  })

  for (const step of [5_000, 3_600_000, -5_000]) {
    it(`when the system clock is wrong by ${step} ms, it matches and settles, ends no live order and reports the clock`, async () => {
      const seconds = Math.floor(Date.now() / 1000)
      const resting = await fixture.place({
        ...{ by: alice, side: 'LONG', steps: 5, limit: 990, expiration: seconds + 600 },
      })
      const keeper = await keepers.start(systemClockWrongBy(step))
      await keepers.cross(20)
      await keepers.untilHeld(20, keeper)
      const market = await fixture.db.selectFrom('markets').selectAll().executeTakeFirstOrThrow()
      expect(market.mode).to.equal('open')
      expect(market.last_as_of).to.be.closeTo(Date.now(), 5_000)
      expect((await fixture.orderOf(resting)).status).to.equal('OPEN')
      const { checks } = (await (await fetch(`${keeper.url}/health/ready`)).json()) as {
        checks: Record<string, unknown>
      }
      expect(checks.clock).to.equal('clock_skewed')
      const metrics = await (await fetch(`${keeper.url}/metrics`)).text()
      const skew = Number(/^keeper_clock_skew_seconds (.*)$/m.exec(metrics)?.[1])
      expect(skew).to.be.closeTo(step / 1000, 0.5)
    })
  }

  it('when a required variable is missing, it prints the variable and exits with an error', async () => {
    const keeper = await keepers.start({ RPC_URL: '' })
    const [code] = await keeper.ended()
    expect(code).to.not.equal(0)
    expect(keeper.output).to.include('RPC_URL is not set')
  })
})
