/** Attempts end with the events of their adjustments, and a reorg takes both back. */
import { expect } from 'chai'
import { getBytes, type Wallet } from 'ethers'
import { beforeEach, describe, it } from 'mocha'
import { toStoredAttempt } from '../../../domain/exchange/decide/chain/adjustments.ts'
import { type Adjustment, holdOf, isLeverage, kindOf } from '../../../domain/positions/adjustment-attempt.ts'
import { hashLeverageAdjustment, hashMarginAdjustment } from '../../../domain/positions/adjustment-hash.ts'
import { toStored } from '../../../domain/positions/stored-adjustment.ts'
import {
  type AttemptChange,
  attemptRequest,
  attemptRow,
  changedAttempt,
  type StoredAttempt,
} from '../../../domain/positions/stored-attempt.ts'
import { type Address, ONE, type Quote, type Seconds } from '../../../domain/units.ts'
import { createAdjustmentStore } from '../../../keeper/adjustments/store.ts'
import { keccak } from '../../support/exchange.ts'
import { e18 } from '../../support/markets.ts'
import { withMirror } from '../../support/mirror.ts'
import { acceptRelay } from '../support/accepted-relay.ts'
import { addressOf, catchUp } from '../support/exchange-fixture.ts'
import { useFollowerFixture } from '../support/follower-fixture.ts'
import { writeRows } from '../support/matched-part.ts'

const DEADLINE = 4_000_000_000 as Seconds
const NO_REPORT = { price: 0n, observedAt: 0, proof: '0x' }
const add = (amount: string): Adjustment => ({
  amount: e18(amount) as Quote,
  removeMode: 'exact',
  minAmount: 0n as Quote,
})
const remove = (amount: string): Adjustment => add(`-${amount}`)
const leverage = (to: number): Adjustment => ({
  ...{ leverage: to, maxMarginIn: e18('1000') as Quote, minMarginOut: 0n as Quote },
})

describe('adjustment attempts on the chain', () => {
  const fixture = useFollowerFixture()

  beforeEach(async () => {
    await fixture.fundAndFollow()
    await fixture.trade(fixture.pair(500))
    await catchUp(fixture.context.follower)
  })

  /** Executed by the operator. Returns the transaction's hash. */
  async function execute(by: Wallet, adjustment: Adjustment, nonce: bigint): Promise<string> {
    const { exchange } = fixture.context
    const asOf = (await exchange.latestSecond()) * 1000
    await exchange.rpc('evm_setNextBlockTimestamp', asOf / 1000 + 1)
    const trader = exchange.trader.connect(await exchange.provider.getSigner(1))
    const signed = { account: addressOf(by), nonce, deadline: DEADLINE }
    if (isLeverage(adjustment)) {
      const digest = hashLeverageAdjustment({ ...adjustment, ...signed }, exchange.spec, keccak)
      const struct = { ...adjustment, ...signed, leverage: BigInt(adjustment.leverage) * ONE }
      const signature = `${by.signMessageSync(getBytes(digest))}01`
      return (await (await trader.adjustLeverage(asOf, struct, NO_REPORT, signature)).wait())?.hash as string
    }
    const digest = hashMarginAdjustment({ ...adjustment, ...signed }, exchange.spec, keccak)
    const struct = { ...adjustment, ...signed, removeMode: 0 }
    const signature = `${by.signMessageSync(getBytes(digest))}01`
    return (await (await trader.adjustMargin(asOf, struct, NO_REPORT, signature)).wait())?.hash as string
  }

  /** An attempt of Alice that the api has accepted. */
  async function prepared(adjustment: Adjustment, nonce: number, signer?: string): Promise<void> {
    const { test, alice } = fixture.context
    const by = (signer ?? addressOf(alice)) as Address
    const hold = holdOf(adjustment)
    const attempt: StoredAttempt = {
      adjustment_id: `1-${nonce}`,
      market_id: 1,
      user_id: test.engine.state.userIds.get(addressOf(alice)) as number,
      digest: `0x${nonce}`,
      kind: kindOf(adjustment),
      nonce,
      request: toStored({ adjustment, signer: by, signature: '0x', deadline: DEADLINE }),
      status: 'PREPARED',
      hold,
      held: hold,
      pays: 0n,
      cancelled_orders: 0,
      as_of: null,
      relayer: null,
      relayer_nonce: null,
      tx_hash: null,
      moved: null,
      max_removable: null,
      gas_used: null,
      failure_kind: null,
      failure_reason: null,
      created_at: nonce,
      updated_at: nonce,
    }
    await writeRows(test.engine, 1, [{ ...attemptRow(attempt, hold), request: attemptRequest(attempt) }])
  }

  /** An attempt of Alice that the keeper has submitted. */
  async function submitted(adjustment: Adjustment, nonce: number): Promise<void> {
    await prepared(adjustment, nonce)
    await change(nonce, { status: 'SUBMITTED', relayer: '0xrelayer', relayer_nonce: nonce })
  }

  async function change(nonce: number, to: AttemptChange): Promise<void> {
    const { engine } = fixture.context.test
    const attempt = toStoredAttempt(engine.state.attempts.need(`1-${nonce}`))
    await writeRows(engine, 1, [changedAttempt(attempt, to, nonce).row])
  }

  const attempts = async () => {
    const rows = await fixture.context.test.db.selectFrom('adjustment_attempts').selectAll().execute()
    return rows.map(({ status, moved, held, failure_kind }) => ({ status, moved, held, failure_kind }))
  }
  const reserved = async () =>
    (await withMirror(fixture.context.test.db).selectFrom('accounts').select('reserved').execute()).map(
      (row) => row.reserved,
    )
  const transactions = async () => {
    const rows = await fixture.context.test.db
      .selectFrom('read.ledger_transactions')
      .select(['type', 'amount', 'available_margin_delta'])
      .where('market_id', '=', 1)
      .orderBy('log_index')
      .orderBy('block')
      .execute()
    return rows.map(({ type, amount, available_margin_delta: delta }) => [type, amount, delta])
  }

  for (const [what, adjustment, type] of [
    ['adds margin', add('100'), 'add_margin'],
    ['removes margin', remove('0.5'), 'remove_margin'],
    ['changes the leverage', leverage(4), 'adjust_leverage'],
  ] as const) {
    it(`when an adjustment ${what}, position and balance equal the contract's, and a reorg takes them back`, async () => {
      const { exchange, test, follower, alice } = fixture.context
      if (type === 'remove_margin') await execute(alice, add('1'), 1n)
      await execute(alice, adjustment, 2n)
      await catchUp(follower)
      await fixture.audit()
      expect((await transactions()).at(-1)?.[0]).to.equal(type)
      const position = await withMirror(test.db)
        .selectFrom('positions')
        .selectAll()
        .where('size', '>', 0)
        .executeTakeFirstOrThrow()
      expect(position.leverage).to.equal(isLeverage(adjustment) ? adjustment.leverage : 5)
      expect(position.matched_leverage).to.equal(position.leverage)
      // No auction has matched the trade, whose margin is 10.
      expect(position.folded_margin - position.matched_folded_margin).to.equal(e18('10'))
      expect(await test.db.selectFrom('used_margin_nonces').select('nonce').execute()).to.deep.include({
        nonce: 2n,
      })
      expect(await fixture.mismatches()).to.deep.equal([])
      await exchange.rpc('anvil_reorg', 1, [])
      await catchUp(follower)
      await fixture.audit()
      const left = await test.db.selectFrom('used_margin_nonces').select('nonce').execute()
      expect(left).to.deep.equal(type === 'remove_margin' ? [{ nonce: 1n }] : [])
      expect(await transactions()).to.have.length(type === 'remove_margin' ? 1 : 0)
    })
  }

  it('when the event of an attempt is mined, it is committed with the release, and a reorg submits it again', async () => {
    const { exchange, follower, alice } = fixture.context
    await submitted(add('100'), 7)
    expect(await reserved()).to.deep.include(e18('100'))
    await execute(alice, add('100'), 7n)
    await catchUp(follower)
    expect(await attempts()).to.deep.equal([
      { status: 'COMMITTED', moved: e18('100'), held: 0n, failure_kind: null },
    ])
    expect(await reserved()).to.deep.equal([0n, 0n])
    await fixture.audit()
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect(await attempts()).to.deep.equal([
      { status: 'SUBMITTED', moved: null, held: e18('100'), failure_kind: null },
    ])
    await fixture.audit()
  })

  /** The attempts in flight, the oldest first: their status, and whether another change of the position must end first. */
  const inFlight = async () => {
    const store = createAdjustmentStore(fixture.context.test)
    const open = await store.open(10)
    const moving = await Promise.all(open.map(async (one) => (await store.state(one)).isMoving))
    return open.map(({ nonce, status }, at) => ({ nonce, status, isMoving: moving[at] }))
  }

  it('when a fork removes an adjustment and the next is prepared, the first is submitted again and the second waits for it', async () => {
    const { exchange, follower, alice } = fixture.context
    await submitted(add('100'), 7)
    await execute(alice, add('100'), 7n)
    await catchUp(follower)
    await prepared(add('50'), 8)
    await exchange.rpc('anvil_reorg', 1, [])
    await catchUp(follower)
    expect(await inFlight()).to.deep.equal([
      { nonce: 7, status: 'SUBMITTED', isMoving: false },
      { nonce: 8, status: 'PREPARED', isMoving: true },
    ])
    expect(await reserved()).to.deep.include(e18('150'))
    await fixture.audit()
    await execute(alice, add('100'), 7n)
    await catchUp(follower)
    expect(await inFlight()).to.deep.equal([{ nonce: 8, status: 'PREPARED', isMoving: false }])
    await fixture.audit()
  })

  it('when a fork removes two adjustments of an account, both are submitted again, and end in either order', async () => {
    const { exchange, follower, alice } = fixture.context
    for (const [amount, nonce] of [
      ['100', 7],
      ['50', 8],
    ] as const) {
      await submitted(add(amount), nonce)
      await execute(alice, add(amount), BigInt(nonce))
      await catchUp(follower)
    }
    await exchange.rpc('anvil_reorg', 2, [])
    await catchUp(follower)
    expect((await inFlight()).map(({ nonce, status }) => [nonce, status])).to.deep.equal([
      [7, 'SUBMITTED'],
      [8, 'SUBMITTED'],
    ])
    expect(await reserved()).to.deep.include(e18('150'))
    await fixture.audit()
    await execute(alice, add('50'), 8n)
    await change(7, { status: 'ABORTED', failure_reason: 'not mined in time' })
    await catchUp(follower)
    expect(await inFlight()).to.deep.equal([])
    expect(await reserved()).to.deep.equal([0n, 0n])
    await fixture.audit()
  })

  it('when prepared attempts of one account are in flight, only the oldest goes on, unless a later one is sent', async () => {
    for (const nonce of [7, 8]) await prepared(add('5'), nonce)
    const moving = async () => (await inFlight()).map(({ isMoving }) => isMoving)
    expect(await moving()).to.deep.equal([false, true])
    await change(8, { status: 'SIGNED', relayer: '0xrelayer', relayer_nonce: 1 })
    expect((await moving())[0]).to.equal(true)
  })

  it('when the revocation of the key that signed is requested, the keeper reads the key as being revoked', async () => {
    const { test, alice } = fixture.context
    const key = `0x${'5e'.repeat(20)}`
    const owner = addressOf(alice)
    const registered = {
      owner,
      key,
      permissions: 3,
      registered_at: 1,
      expires_at: DEADLINE,
      revoked_at: null,
    }
    await test.db
      .insertInto('session_keys')
      .values({ ...registered, block: 1 })
      .execute()
    await prepared(add('5'), 7, key)
    const store = createAdjustmentStore(test)
    const isRevoking = async () => {
      const [attempt] = await store.open(1)
      return attempt && (await store.state(attempt)).sessionKey?.is_revoking
    }
    expect(await isRevoking()).to.equal(false)
    await acceptRelay(test.engine, {
      operation_id: '0x1',
      user_id: test.engine.state.userIds.get(owner) as number,
      kind: 'revoke_session_key',
      session_key: key,
      owner,
      nonce: 0,
    })
    expect(await isRevoking()).to.equal(true)
  })

  it('when the event has another amount than was signed for, the attempt fails with the kind, and the ledger follows the event', async () => {
    const { follower, alice } = fixture.context
    await submitted(add('100'), 7)
    await execute(alice, add('90'), 7n)
    await catchUp(follower)
    const [attempt] = await attempts()
    expect(attempt).to.include({ status: 'RECEIPT_RECONCILIATION_FAILED', held: 0n })
    expect(attempt?.failure_kind).to.equal('missing_expected_position_updates')
    expect(await fixture.mismatches()).to.deep.equal(['missing_expected_position_updates'])
    await fixture.audit()
  })
})
