/** Log-ins, relay requests, adjustments, and settings of operators. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readAccountState } from '../../../../domain/exchange/decide/chain/account-state.ts'
import { type AdjustCommand, decideAdjust } from '../../../../domain/exchange/decide/orders/adjust.ts'
import type { Item } from '../../../../domain/exchange/decide/orders/command.ts'
import { decideOrders } from '../../../../domain/exchange/decide/orders/decide-orders.ts'
import { decideOperator, type OperatorSetting } from '../../../../domain/exchange/decide/orders/operator.ts'
import {
  type AcceptRelayCommand,
  decideAcceptRelay,
} from '../../../../domain/exchange/decide/orders/relays.ts'
import { decideLogIn } from '../../../../domain/exchange/decide/orders/users.ts'
import { violations } from '../../../../domain/exchange/laws.ts'
import { FLAT } from '../../../../domain/positions/position.ts'
import type { RelayEffect } from '../../../../domain/relays/operation.ts'
import type { MarketId, Millis, Quote, Rate, Seconds, Steps } from '../../../../domain/units.ts'
import { e18, perpetual } from '../../../support/markets.ts'
import { addressOf, DecidedExchange, orderOf, userOf } from './support/decided-exchange.ts'

const KEY = `0x${'5e'.repeat(20)}`
const REGISTER: RelayEffect = { kind: 'register_session_key', sessionKey: KEY }
const REVOKE: RelayEffect = { kind: 'revoke_session_key', sessionKey: KEY }

function requestOf(
  effect: RelayEffect,
  nonce: number,
  changes: Partial<AcceptRelayCommand> = {},
): AcceptRelayCommand {
  const from = addressOf(1)
  return {
    kind: 'accept_relay',
    userId: userOf(1),
    operationId: `${effect.kind} ${nonce}`,
    effect,
    request: { from, to: addressOf(99), gas: 1, nonce, deadline: 1 as Seconds, data: '0x' },
    signature: '0xAB',
    hasLane: true,
    ...changes,
  }
}

describe('a log-in', () => {
  it('when an address logs in for the first time, it gets the next id, and later the same', () => {
    const exchange = new DecidedExchange(['1', '1'])
    const address = addressOf(77)
    const first = exchange.take(decideLogIn, { kind: 'log_in', address })
    expect(first.answer).to.deep.equal({ userId: 3, isNew: true })
    const again = exchange.take(decideLogIn, { kind: 'log_in', address })
    expect([again.answer, again.entries]).to.deep.equal([{ userId: 3, isNew: false }, []])
    exchange.state.core.undo.undoTo(0)
    expect(exchange.state.newestUser.next()).to.equal(1)
  })
})

describe('a relay request', () => {
  const take = (exchange: DecidedExchange, command: AcceptRelayCommand) =>
    exchange.take(decideAcceptRelay, command)
  const codeOf = (exchange: DecidedExchange, command: AcceptRelayCommand): string => {
    const { answer, entries } = take(exchange, command)
    if (answer.kind === 'refused') expect(entries).to.deep.equal([])
    return answer.kind === 'refused' ? answer.refusal.code : answer.status
  }

  it('when it is repeated, it is the same operation; a second one for the key is refused', () => {
    const exchange = new DecidedExchange(['1'])
    expect(codeOf(exchange, requestOf(REGISTER, 0))).to.equal('QUEUED')
    const again = take(exchange, requestOf(REGISTER, 0))
    expect([again.entries, again.answer]).to.deep.equal([
      [],
      { kind: 'accepted', operationId: 'register_session_key 0', status: 'QUEUED', isNew: false },
    ])
    expect(codeOf(exchange, requestOf(REGISTER, 1))).to.equal('SESSION_KEY_PENDING')
    expect(codeOf(exchange, requestOf(REVOKE, 1))).to.equal('QUEUED')
    expect(exchange.state.relayIndex.isRevoking(addressOf(1), KEY)).to.equal(true)
    expect(exchange.state.relayIndex.open(addressOf(1)).map(({ nonce }) => nonce)).to.deep.equal([0, 1])
  })

  it('given a nonce that is used, taken or ahead, another owner, or no lane, it is refused', () => {
    const exchange = new DecidedExchange(['1', '1'])
    expect(codeOf(exchange, requestOf(REGISTER, 1))).to.equal('FORWARD_NONCE_GAP')
    expect(codeOf(exchange, requestOf(REGISTER, 0, { hasLane: false }))).to.equal('RELAY_UNAVAILABLE')
    expect(codeOf(exchange, requestOf(REGISTER, 0, { userId: userOf(2) }))).to.equal('MAKER_MISMATCH')
    expect(codeOf(exchange, requestOf(REVOKE, 0))).to.equal('SESSION_KEY_NOT_FOUND')
    expect(codeOf(exchange, requestOf(REGISTER, 0))).to.equal('QUEUED')
    const other: RelayEffect = { kind: 'register_session_key', sessionKey: `0x${'6f'.repeat(20)}` }
    expect(codeOf(exchange, requestOf(other, 0, { operationId: 'other' }))).to.equal('FORWARD_NONCE_TAKEN')
    const own: RelayEffect = { kind: 'register_session_key', sessionKey: addressOf(2) }
    expect(codeOf(exchange, requestOf(own, 1))).to.equal('SESSION_KEY_IS_ACCOUNT')
    const floor: RelayEffect = { kind: 'invalidate_margin_nonces', marketId: perpetual.marketId, minimum: 0n }
    expect(codeOf(exchange, requestOf(floor, 1))).to.equal('MARGIN_NONCE_NOT_RAISED')
  })

  it('given eight open operations of the owner, a further one is refused', () => {
    const exchange = new DecidedExchange(['1'])
    for (let nonce = 0; nonce <= 8; nonce++) {
      const sessionKey = `0x${(nonce + 160).toString(16).repeat(20)}`
      const code = codeOf(exchange, requestOf({ kind: 'register_session_key', sessionKey }, nonce))
      expect(code).to.equal(nonce < 8 ? 'QUEUED' : 'RELAY_LIMIT')
    }
  })
})

describe('an adjustment', () => {
  const { marketId } = perpetual
  const addition = { amount: e18('1') as Quote, removeMode: 'exact' as const, minAmount: 0n as Quote }
  const leverage = { leverage: 4, maxMarginIn: e18('1') as Quote, minMarginOut: 0n as Quote }

  /** User 1 has a long position of 20 steps at 100 with a margin of 1. */
  function withPosition(): DecidedExchange {
    const exchange = new DecidedExchange(['100', '100'])
    const half = { size: 20 as Steps, entryNotional: e18('2') as Quote, foldedMargin: e18('1') as Quote }
    exchange.state.positions.put({
      userId: userOf(1),
      marketId,
      leverage: 2,
      matchedLeverage: 2,
      ...half,
      matchedSize: half.size,
      matchedEntryNotional: half.entryNotional,
      matchedFoldedMargin: half.foldedMargin,
    })
    return exchange
  }

  const take = (exchange: DecidedExchange, changes: Partial<AdjustCommand> = {}) =>
    exchange.take(decideAdjust, {
      kind: 'adjust',
      userId: userOf(1),
      marketId,
      digest: '0x01',
      nonce: 1,
      signed: {
        adjustment: addition,
        signer: addressOf(1),
        signature: '0x',
        deadline: (exchange.now / 1_000 + 600) as Seconds,
      },
      hasLane: true,
      ...changes,
    })
  const codeOf = ({ answer, entries }: ReturnType<typeof take>): string => {
    if (answer.kind === 'refused') expect(entries).to.deep.equal([])
    return answer.kind === 'refused' ? answer.refusal.code : answer.status
  }

  it('when it is accepted, its amount is reserved; a repetition is the same attempt, another one is refused', () => {
    const exchange = withPosition()
    expect(codeOf(take(exchange))).to.equal('PREPARED')
    expect(exchange.state.accounts.need(1).reserved).to.equal(e18('1'))
    const again = take(exchange)
    expect(again.entries).to.deep.equal([])
    expect(again.answer).to.deep.include({ kind: 'accepted', isNew: false })
    expect(codeOf(take(exchange, { digest: '0x02', nonce: 2 }))).to.equal('ADJUSTMENT_IN_FLIGHT')
    const sums = violations(exchange.state).filter((line) => line.startsWith('account'))
    expect(sums).to.deep.equal([])
  })

  it('when a worker asks for the account of an attempt, it gets funds, mined position and whether that may change', () => {
    const exchange = withPosition()
    const ask = (adjustmentId: string, userId = userOf(1)) => {
      const decision = exchange.take(readAccountState, {
        kind: 'account_state',
        userId,
        marketId,
        adjustmentId,
      })
      expect(decision.entries).to.deep.equal([])
      return decision.answer
    }
    const { answer } = take(exchange)
    const first = answer.kind === 'accepted' ? answer.adjustmentId : ''
    const position = { size: 20, entryNotional: e18('2'), foldedMargin: e18('1'), leverage: 2 }
    expect(ask(first)).to.deep.equal({ funds: e18('100'), position, isMoving: false, minimumNonce: 0n })
    expect(ask('', userOf(2)))
      .to.include({ isMoving: false })
      .and.to.deep.include({ position: FLAT })
    expect(ask('', userOf(9))).to.equal(null)

    const attempt = exchange.state.attempts.need(first)
    const put = (changes: Partial<typeof attempt>) => exchange.state.attempts.put({ ...attempt, ...changes })
    const later = { adjustment_id: 'later', created_at: attempt.created_at + 1, digest: '0x03' }
    put(later)
    expect(ask(first)?.isMoving, 'a younger attempt waits for the older one').to.equal(false)
    expect(ask('later')?.isMoving).to.equal(true)
    put({ ...later, status: 'SIGNED' })
    expect(ask(first)?.isMoving, 'a signed attempt may be mined').to.equal(true)
    put({ ...later, status: 'ABORTED' })
    expect(ask(first)?.isMoving).to.equal(false)

    const order = orderOf({ by: 1, salt: 9 })
    exchange.take(decideOrders, {
      kind: 'orders',
      userId: userOf(1),
      items: [{ kind: 'place', order, clientOrderId: null, absentUpTo: null }],
      isAtomic: false,
      request: null,
    })
    expect(ask(first)?.isMoving, 'an order in the book changes nothing by itself').to.equal(false)
    const [placed] = exchange.state.orderIndex.liveOf(marketId, userOf(1))
    exchange.state.orders.put({ ...(placed as NonNullable<typeof placed>), settling: 5 as Steps })
    expect(ask(first)?.isMoving, 'a fill that is not settled').to.equal(true)
  })

  it('when the leverage changes, the orders of the account in the market end, and their reservations are free for it', () => {
    const exchange = withPosition()
    for (const salt of [1, 2]) {
      const order = orderOf({ by: 1, salt })
      const items: Item[] = [{ kind: 'place', order, clientOrderId: null, absentUpTo: null }]
      exchange.take(decideOrders, {
        kind: 'orders',
        userId: userOf(1),
        items,
        isAtomic: false,
        request: null,
      })
    }
    expect(exchange.state.orderIndex.liveOf(marketId, userOf(1)).length).to.equal(2)
    const signer = addressOf(1)
    const deadline = (exchange.now / 1_000 + 600) as Seconds
    const signed = { adjustment: leverage, signer, signature: '0x', deadline }
    const { answer, entries } = take(exchange, { signed })
    expect(answer.kind).to.equal('accepted')
    expect(entries.map(({ row }) => row.kind)).to.deep.equal([
      'order_ended',
      'order_ended',
      'adjustment_changed',
    ])
    expect(exchange.state.accounts.need(1).reserved).to.equal(e18('1'))
  })

  it('given a foreign signer, no lane, an unread chain, or no position, it is refused', () => {
    const exchange = withPosition()
    const deadline = (exchange.now / 1_000 + 600) as Seconds
    const foreign = { adjustment: addition, signer: addressOf(5), signature: '0x', deadline }
    expect(codeOf(take(exchange, { signed: foreign }))).to.equal('ADJUSTER_UNAUTHORIZED')
    expect(codeOf(take(exchange, { hasLane: false }))).to.equal('ADJUSTMENTS_UNAVAILABLE')
    expect(codeOf(take(exchange, { userId: userOf(9) }))).to.equal('USER_NOT_FOUND')
    expect(codeOf(take(exchange, { marketId: 99 as MarketId }))).to.equal('MARKET_NOT_FOUND')
    const other = { ...foreign, signer: addressOf(2) }
    expect(take(exchange, { userId: userOf(2), signed: other }).answer.kind).to.equal('refused')
    exchange.chainSeenAt = null
    expect(codeOf(take(exchange))).to.equal('CHAIN_UNSEEN')
  })
})

describe('a setting of an operator', () => {
  const { marketId } = perpetual
  const set = (exchange: DecidedExchange, setting: OperatorSetting, market: MarketId = marketId) =>
    exchange.take(decideOperator, { kind: 'operator', marketId: market, setting })

  it('when it is set, the market has it', () => {
    const exchange = new DecidedExchange(['1'])
    const market = () => exchange.state.markets.need(String(marketId))
    set(exchange, { kind: 'calendar', calendar: 'NYSE' })
    set(exchange, { kind: 'impact_notional', notional: e18('5') as never })
    set(exchange, { kind: 'protection', width: e18('0.02') as Rate })
    expect([market().calendar, market().impact_notional]).to.deep.equal(['NYSE', e18('5').toString()])
    expect(market().next_price_protection).to.equal(e18('0.02').toString())
    exchange.write(marketId, { kind: 'market_restricted', mode: 'cancel_only', why: 'reverts' })
    expect(set(exchange, { kind: 'reopen' }).answer).to.deep.equal({
      kind: 'done',
      modeBefore: 'cancel_only',
    })
    expect(market().mode).to.equal('open')
  })

  it('given rates that are valid, the period is announced, and a dry run or a refusal writes nothing', () => {
    const exchange = new DecidedExchange(['1'])
    const rates = { makerFee: 0n as Rate, takerFee: 0n as Rate }
    const change = { rates, from: exchange.now, until: (exchange.now + 1e9) as Millis }
    expect(set(exchange, { kind: 'fees', change, isDryRun: true }).entries).to.deep.equal([])
    expect(set(exchange, { kind: 'fees', change, isDryRun: false }).entries.length).to.equal(1)
    expect(exchange.state.markets.need(String(marketId)).fee_periods.length).to.equal(1)
    const invalid = { ...change, rates: { ...rates, takerFee: 1n as Rate } }
    expect(set(exchange, { kind: 'fees', change: invalid, isDryRun: false }).answer).to.deep.include({
      kind: 'refused',
    })
    const wide = set(exchange, { kind: 'protection', width: e18('0.9') as Rate })
    expect([wide.entries, wide.answer.kind]).to.deep.equal([[], 'refused'])
    expect(set(exchange, { kind: 'reopen' }, 99 as MarketId).answer).to.deep.equal({
      kind: 'refused',
      refusal: { code: 'MARKET_NOT_FOUND', received: 99 },
    })
  })
})
