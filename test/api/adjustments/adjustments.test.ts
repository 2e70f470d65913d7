/** Which adjustments the api accepts, what it stores for each, and how it answers once their outcome is known. */
import { expect } from 'chai'
import { getBytes, TypedDataEncoder, Wallet } from 'ethers'
import { after, before, beforeEach, describe, it } from 'mocha'
import { loadAttempt } from '../../../db/adjustments.ts'
import { seizeLease } from '../../../db/leases.ts'
import { ADJUSTMENT_LANE } from '../../../db/relayers.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import { e18, perpetual } from '../../support/markets.ts'
import { accountIn, withMirror } from '../../support/mirror.ts'
import { waitFor } from '../../support/patience.ts'
import { changeAttempt } from '../../support/rows/adjustments.ts'
import { appendRows, lockShard } from '../../support/rows/journal.ts'
import {
  type Answer,
  createUser,
  type ExchangeFixture,
  setOracle,
  startExchange,
  type User,
} from '../support/exchange-fixture.ts'

const FIELDS = {
  AdjustMargin: ['account', 'amount', 'removeMode', 'minAmount', 'nonce', 'deadline'],
  AdjustLeverage: ['account', 'leverage', 'maxMarginIn', 'minMarginOut', 'nonce', 'deadline'],
}
const TYPES: Readonly<Record<string, string>> = { account: 'address', amount: 'int256', removeMode: 'uint8' }
const RELAYER = `0x${'ad'.repeat(20)}`
const MARKET = perpetual.marketId
const FAR = 4_000_000_000

describe('adjustments over REST', () => {
  let exchange: ExchangeFixture
  let user: User
  let next = 0

  before(async () => {
    exchange = await startExchange({ ADJUSTMENT_WAIT_MS: '700' })
    await runLane(3_600_000)
  })
  after(() => exchange.stop())
  const runLane = (lifeMs: number) =>
    seizeLease(exchange.db, { name: ADJUSTMENT_LANE, owner: 'keeper', now: Date.now(), lifeMs })
  // Each test has an account of its own, with a long of 10 at 100 and a margin of 200.
  beforeEach(async () => {
    await setOracle(exchange.db, perpetual, '100')
    user = await createUser(exchange.db, `trader ${++next}`, '1000')
    await hold({ folded_margin: e18('200') })
  })

  const hold = (position: { folded_margin: bigint }) => {
    const size = Number(e18('10') / perpetual.step)
    const mined = { size, entry_notional: e18('1000'), leverage: 10, ...position }
    const matched = {
      ...{ matched_size: size, matched_entry_notional: e18('1000'), matched_leverage: 10 },
      matched_folded_margin: position.folded_margin,
    }
    return withMirror(exchange.db)
      .insertInto('positions')
      .values({ user_id: user.userId, market_id: MARKET, ...mined, ...matched })
      .onConflict((conflict) =>
        conflict.columns(['user_id', 'market_id']).doUpdateSet({ ...mined, ...matched }),
      )
      .execute()
  }

  type Struct = keyof typeof FIELDS
  const sign = (struct: Struct, message: Record<string, unknown>, signer = user.wallet, personal = false) => {
    const { chainId, trader: verifyingContract } = perpetual
    const domain = { name: 'IsolatedTrader', version: '2.0', chainId, verifyingContract }
    const fields = FIELDS[struct].map((name) => ({ name, type: TYPES[name] ?? 'uint256' }))
    const digest = TypedDataEncoder.hash(domain, { [struct]: fields }, message)
    if (personal) return `${signer.signMessageSync(getBytes(digest))}01`
    return signer.signingKey.sign(digest).serialized
  }
  interface Terms {
    readonly nonce?: number
    readonly deadline?: number
    readonly signer?: Wallet
    readonly personal?: boolean
  }
  const margin = (
    amount: string,
    {
      nonce = 1,
      deadline = FAR,
      mode = 'exact',
      min = '0',
      signer,
      personal,
    }: Terms & { mode?: string; min?: string } = {},
  ) => {
    const message = {
      ...{ account: user.address, amount: e18(amount), removeMode: mode === 'exact' ? 0 : 1 },
      ...{ minAmount: e18(min), nonce, deadline },
    }
    const signature = sign('AdjustMargin', message, signer, personal)
    const common = { symbol: perpetual.symbol, address: user.address, nonce, deadline, signature }
    return { ...common, amount, remove_mode: mode, min_amount: min } as Record<string, unknown>
  }
  const leverage = (
    to: number,
    {
      nonce = 1,
      deadline = FAR,
      maxIn = '0',
      minOut = '0',
      signer,
    }: Terms & { maxIn?: string; minOut?: string } = {},
  ) => {
    const limits = { maxMarginIn: e18(maxIn), minMarginOut: e18(minOut) }
    const message = { account: user.address, leverage: e18(`${to}`), ...limits, nonce, deadline }
    const signature = sign('AdjustLeverage', message, signer)
    const common = { symbol: perpetual.symbol, address: user.address, nonce, deadline, signature }
    const raw = { max_margin_in_e18_raw: `${e18(maxIn)}`, min_margin_out_e18_raw: `${e18(minOut)}` }
    return { ...common, leverage: to, ...raw } as Record<string, unknown>
  }
  const sendMargin = (body: unknown) => exchange.send(user, 'POST', '/v0/account/adjust-margin', body)
  const sendLeverage = (body: unknown) => exchange.send(user, 'POST', '/v0/account/adjust-leverage', body)
  const attempts = async (query = '') => {
    await exchange.project()
    return (await exchange.get(user, `/v0/account/adjustment-attempts${query}`)).body.attempts
  }
  const reserved = async (): Promise<bigint> => (await accountIn(exchange.db, user.userId)).reserved
  /** Ends the attempt as indexer or keeper do. */
  const end = (adjustmentId: string, change: Parameters<typeof changeAttempt>[2], at = Date.now()) =>
    exchange.db.transaction().execute(async (tx) => {
      const head = await lockShard(tx, marketShard(MARKET))
      const attempt = await loadAttempt(tx, adjustmentId)
      if (attempt === undefined) throw new Error(`no attempt ${adjustmentId}`)
      const row = await changeAttempt(tx, attempt, change, { seq: head.head + 1, at })
      await appendRows(tx, head, [row])
    })

  const expectCode = (answer: Answer, status: number, code: string, more: Record<string, unknown> = {}) => {
    expect(answer.body.details, JSON.stringify(answer.body)).to.include({ code, ...more })
    expect(answer.status).to.equal(status)
  }
  /** Refused without any effect. */
  const expectRefused = async (
    send: () => Promise<Answer>,
    status: number,
    code: string,
    more: Record<string, unknown> = {},
  ) => {
    const before = await exchange.state()
    expectCode(await send(), status, code, more)
    expect(await exchange.state()).to.deep.equal(before)
    expect(await attempts()).to.deep.equal([])
  }

  it('when an addition is accepted, its amount is reserved, and the answer is 408 with the id until it is executed', async () => {
    const answer = await sendMargin(margin('50'))
    expectCode(answer, 408, 'ADJUSTMENT_PENDING', { outcome: 'unknown', status: 'PREPARED' })
    const { adjustment_id } = answer.body.details
    expect(await reserved()).to.equal(e18('50'))
    const [attempt] = await attempts()
    expect(attempt).to.include({
      ...{ adjustment_id, user_id: user.userId, market_id: MARKET, kind: 'add_margin', status: 'PREPARED' },
      ...{ amount_e18_raw: `${e18('50')}`, new_leverage_raw: null, tx_hash: null, failure_kind: null },
      failure_reason: null,
    })
    expect((await exchange.get(user, `/v0/balance/${user.userId}/margin`)).body.balance.available).to.equal(
      950,
    )
  })

  it('when the adjustment is committed, the same signed request returns it, with the bookmark of its last row', async () => {
    const body = margin('50')
    const { adjustment_id } = (await sendMargin(body)).body.details
    const sent = { relayer: RELAYER, relayer_nonce: 7, tx_hash: '0x1', as_of: 1 }
    await end(adjustment_id, { status: 'SIGNED', ...sent })
    await end(adjustment_id, { status: 'COMMITTED', moved: e18('50'), tx_hash: '0x1', gas_used: 90_000 }, 1)
    expect((await attempts())[0].updated_at).to.equal((await attempts())[0].created_at)
    const { status, body: answer } = await sendMargin(body)
    expect(status).to.equal(200)
    expect(answer).to.deep.include({
      ...{ success: true, adjustment_id, market_id: MARKET, symbol: perpetual.symbol, amount: 50 },
      ...{ perpetual_address: perpetual.trader, tx_hash: '0x1', called_by: RELAYER, gas_used: '90000' },
      execution: { relayer_id: 'adjust', nonce: '7', tx_hash: '0x1' },
    })
    expect(answer.read_after.shard_id).to.match(/^m1\./)
    expect(await reserved()).to.equal(0n)
    expect((await sendMargin(body)).body).to.deep.equal(answer)
  })

  it('when the attempt ends while the request waits, the answer follows at once', async () => {
    const started = Date.now()
    const sent = sendMargin(margin('-5', { personal: true }))
    const { adjustment_id } = await waitFor(
      async () => (await attempts())[0],
      (found) => found !== undefined,
    )
    await end(adjustment_id, {
      status: 'COMMITTED',
      moved: -e18('5'),
      tx_hash: '0x2',
      max_removable: e18('100'),
    })
    const { status, body } = await sent
    expect(status, JSON.stringify(body)).to.equal(200)
    expect(body).to.include({ amount: -5, max_removable_amount: 100 })
    expect(Date.now() - started).to.be.lessThan(5_000)
  })

  it('when the attempt is aborted, the reservation is released and the answer names the reason', async () => {
    const body = margin('50')
    const { adjustment_id } = (await sendMargin(body)).body.details
    await end(adjustment_id, { status: 'ABORTED', failure_reason: 'DeadlinePassed' })
    expectCode(await sendMargin(body), 409, 'ADJUSTMENT_ABORTED', { failure_reason: 'DeadlinePassed' })
    expect(await reserved()).to.equal(0n)
    expect((await attempts('?status=ABORTED'))[0]).to.include({
      failure_kind: null,
      failure_reason: 'DeadlinePassed',
    })
  })

  it('when the receipt does not match, the answer has kind and reason, and an unknown outcome', async () => {
    const body = margin('50')
    const { adjustment_id } = (await sendMargin(body)).body.details
    const failure = {
      failure_kind: 'missing_expected_position_updates',
      failure_reason: '1 wei moved',
    } as const
    await end(adjustment_id, { status: 'RECEIPT_RECONCILIATION_FAILED', tx_hash: '0x3', ...failure })
    expectCode(await sendMargin(body), 409, 'ADJUSTMENT_NOT_RECONCILED', { outcome: 'unknown', ...failure })
  })

  it('when another adjustment of the account in the market is in flight, it is refused with its id', async () => {
    const { adjustment_id } = (await sendMargin(margin('50'))).body.details
    expectCode(await sendMargin(margin('60', { nonce: 2 })), 409, 'ADJUSTMENT_IN_FLIGHT', { adjustment_id })
    expect(await reserved()).to.equal(e18('50'))
  })

  it('when two different requests arrive at once, one is prepared', async () => {
    const answers = await Promise.all([sendMargin(margin('600')), sendMargin(margin('600', { nonce: 2 }))])
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([408, 409])
    expect(await reserved()).to.equal(e18('600'))
  })

  it('when the leverage is changed, the open orders of the market are cancelled and counted, and max_margin_in is reserved', async () => {
    const terms = { price: '90', leverage: 1 }
    const placed = [await exchange.place(user, terms), await exchange.place(user, terms)]
    const body = leverage(5, { maxIn: '20' })
    const { adjustment_id } = (await sendLeverage(body)).body.details
    expect(await reserved()).to.equal(e18('20'))
    await end(adjustment_id, { status: 'COMMITTED', moved: 0n, tx_hash: '0x4' })
    const { body: answer } = await sendLeverage(body)
    expect(answer).to.include({ cancelled_orders: 2, recreated_orders: 0 })
    await exchange.project()
    for (const { body: order } of placed) {
      const { status, body: read } = await exchange.get(user, `/v0/orders/${order.order.order_id}`)
      expect([status, read.order?.status ?? read.status]).to.deep.equal([200, 'CANCELLED'])
    }
    expect((await attempts('?kind=adjust_leverage'))[0]).to.include({
      new_leverage_raw: '5',
      amount_e18_raw: '0',
    })
  })

  it('when attempts are listed, every filter selects, and other accounts see nothing', async () => {
    const { adjustment_id } = (await sendMargin(margin('50'))).body.details
    for (const [query, count] of [
      [`?adjustment_id=${adjustment_id}`, 1],
      ['?adjustment_id=other', 0],
      [`?market_id=${MARKET}&kind=add_margin&status=PREPARED&limit=1`, 1],
      ['?market_id=2', 0],
      ['?kind=remove_margin', 0],
      ['?status=COMMITTED', 0],
    ] as const) {
      expect(await attempts(query), query).to.have.length(count)
    }
    user = await createUser(exchange.db, `stranger ${next}`)
    expect(await attempts(`?adjustment_id=${adjustment_id}`)).to.deep.equal([])
    expect((await exchange.get(null, '/v0/account/adjustment-attempts')).status).to.equal(401)
  })

  // ---------------------------------------------------------------------- refusals

  it('when the account may not do it, each reason has its code, and nothing is stored', async () => {
    const past = Math.floor(Date.now() / 1000) - 5
    const cases: [() => Record<string, unknown>, number, string][] = [
      [() => margin('50', { deadline: past }), 400, 'DEADLINE_PASSED'],
      [() => margin('5000'), 400, 'ADJUSTMENT_UNFUNDED'],
      [() => margin('-150'), 400, 'REMOVAL_TOO_LARGE'],
      [() => margin('-150', { mode: 'up_to', min: '149' }), 400, 'AMOUNT_BELOW_MINIMUM'],
      [() => margin('50', { signer: new Wallet(`0x${'07'.repeat(32)}`) }), 400, 'ADJUSTER_UNAUTHORIZED'],
      [() => ({ ...margin('50'), signature: '0x1234' }), 400, 'ADJUSTMENT_SIGNATURE_FORMAT'],
      [() => ({ ...margin('50'), amount: '51' }), 400, 'ADJUSTER_UNAUTHORIZED'],
      [() => margin('50', { mode: 'up_to' }), 400, 'INVALID_FIELD'],
      [() => ({ ...margin('50'), amount: '0' }), 400, 'INVALID_FIELD'],
      [() => ({ ...margin('50'), market_id: 2 }), 400, 'INVALID_FIELD'],
      [() => ({ ...margin('50'), address: `0x${'00'.repeat(20)}` }), 403, 'NOT_YOURS'],
      [() => ({ ...margin('50'), symbol: 'NONE' }), 404, 'MARKET_NOT_FOUND'],
      [() => ({ ...margin('50'), nonce: 1.5 }), 400, 'INVALID_FIELD'],
      [() => ({ ...margin('50'), extra: 1 }), 400, 'UNKNOWN_FIELD'],
    ]
    for (const [body, status, code] of cases) await expectRefused(() => sendMargin(body()), status, code)
    const bounds: [Record<string, unknown>, string][] = [
      [leverage(2, { maxIn: '10' }), 'MARGIN_IN_TOO_LARGE'],
      [leverage(10, { minOut: '101' }), 'MARGIN_OUT_TOO_SMALL'],
      [leverage(1_000), 'LEVERAGE_CAP'],
      [{ ...leverage(10), order_action: 'recreate' }, 'INVALID_FIELD'],
    ]
    for (const [body, code] of bounds) await expectRefused(() => sendLeverage(body), 400, code)
  })

  it('when the position is flat, near its requirement, or eligible for liquidation, the contract rule decides', async () => {
    await hold({ folded_margin: e18('100') })
    await expectRefused(() => sendMargin(margin('-1', { mode: 'up_to' })), 400, 'NOTHING_REMOVABLE')
    await hold({ folded_margin: e18('10') })
    await expectRefused(() => sendMargin(margin('1')), 400, 'ADDITION_INSUFFICIENT')
    await withMirror(exchange.db).deleteFrom('positions').where('user_id', '=', user.userId).execute()
    await expectRefused(() => sendMargin(margin('1')), 400, 'NO_POSITION')
  })

  it('when a liquidation is running, only an addition is accepted, and none for a minute after a signed one was aborted', async () => {
    const running = {
      ...{ market_id: MARKET, user_id: user.userId, number: 1, stage: 'selling' as never },
      ...{ start_size: 1, order_id: null, queue_no: null, seen_seq: 1, started_at: 1 },
    }
    await exchange.db.insertInto('liquidations').values(running).execute()
    await expectRefused(() => sendMargin(margin('-1')), 409, 'POSITION_IN_LIQUIDATION')
    const unsigned = (await sendMargin(margin('50'))).body.details
    await end(unsigned.adjustment_id, { status: 'ABORTED', failure_reason: 'DeadlinePassed' })
    const { adjustment_id } = (await sendMargin(margin('50', { nonce: 3 }))).body.details
    await end(adjustment_id, { status: 'SIGNED', relayer: RELAYER, relayer_nonce: 9 })
    await end(adjustment_id, { status: 'ABORTED', failure_reason: 'MarginNonceBelowMinimum' })
    expectCode(await sendMargin(margin('60', { nonce: 2 })), 429, 'ADJUSTMENT_FAILED_RECENTLY')
  })

  it('when the nonce was used on the chain, or is below the minimum, it is refused', async () => {
    const nonces = { market_id: MARKET, user_id: user.userId, nonce: 5n }
    await exchange.db.insertInto('used_margin_nonces').values(nonces).execute()
    await expectRefused(() => sendMargin(margin('1', { nonce: 5 })), 409, 'MARGIN_NONCE_USED')
    const floor = { market_id: MARKET, account: user.address, minimum: 9n, block: 1 }
    await exchange.db.insertInto('margin_nonce_floors').values(floor).execute()
    await expectRefused(() => sendMargin(margin('1', { nonce: 8 })), 400, 'MARGIN_NONCE_BELOW_MINIMUM')
  })

  it('when a session key signs, it needs the permission to change margin, and must be active', async () => {
    const key = new Wallet(`0x${'08'.repeat(32)}`)
    const of = { owner: user.address, key: key.address.toLowerCase(), registered_at: 1, block: 1 }
    const put = (state: { permissions: number; expires_at: number; revoked_at: number | null }) =>
      exchange.db
        .insertInto('session_keys')
        .values({ ...of, ...state })
        .onConflict((conflict) => conflict.columns(['owner', 'key']).doUpdateSet(state))
        .execute()
    const active = { permissions: 3, expires_at: FAR, revoked_at: null }
    for (const [change, code] of [
      [{ permissions: 1 }, 'SESSION_KEY_NOT_PERMITTED'],
      [{ expires_at: 2 }, 'SESSION_KEY_EXPIRED'],
      [{ revoked_at: 2 }, 'SESSION_KEY_REVOKED'],
    ] as const) {
      await put({ ...active, ...change })
      await expectRefused(() => sendMargin(margin('1', { signer: key })), 400, code)
    }
    await put(active)
    expectCode(await sendMargin(margin('1', { signer: key })), 408, 'ADJUSTMENT_PENDING')
  })

  it('when the oracle price is too old, it is refused for the time being', async () => {
    await setOracle(exchange.db, perpetual, '100', Date.now() - 700_000)
    await expectRefused(() => sendMargin(margin('1')), 503, 'ORACLE_STALE')
  })

  it('when no keeper runs the lane any more, a new request is refused, and a repeated one returns its attempt', async () => {
    const body = margin('50')
    const { adjustment_id } = (await sendMargin(body)).body.details
    await end(adjustment_id, { status: 'ABORTED', failure_reason: 'DeadlinePassed' })
    await runLane(-1)
    expectCode(await sendMargin(margin('50', { nonce: 2 })), 503, 'ADJUSTMENTS_UNAVAILABLE')
    expectCode(await sendMargin(body), 409, 'ADJUSTMENT_ABORTED', { adjustment_id })
    expect(await reserved()).to.equal(0n)
    await runLane(3_600_000)
    expectCode(await sendMargin(margin('50', { nonce: 2 })), 408, 'ADJUSTMENT_PENDING')
  })

  it('when no relayer executes adjustments, it is refused and nothing is stored', async () => {
    const other = await startExchange()
    const { body, status } = await other.send(
      await createUser(other.db, 'alone'),
      'POST',
      '/v0/account/adjust-margin',
      { ...margin('1'), address: (await createUser(other.db, 'other')).address },
    )
    expect([status, body.details.code]).to.deep.equal([403, 'NOT_YOURS'])
    user = await createUser(other.db, 'third')
    const refused = await other.send(user, 'POST', '/v0/account/adjust-margin', margin('1'))
    expect([refused.status, refused.body.details.code]).to.deep.equal([503, 'ADJUSTMENTS_UNAVAILABLE'])
    await other.stop()
  })
})
