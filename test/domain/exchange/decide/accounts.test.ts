/** Log-ins, relay requests, and settings of operators. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { decideOperator, type OperatorSetting } from '../../../../domain/exchange/decide/orders/operator.ts'
import {
  type AcceptRelayCommand,
  decideAcceptRelay,
} from '../../../../domain/exchange/decide/orders/relays.ts'
import { decideLogIn } from '../../../../domain/exchange/decide/orders/users.ts'
import type { RelayEffect } from '../../../../domain/relays/operation.ts'
import type { MarketId, Millis, Rate, Seconds } from '../../../../domain/units.ts'
import { e18, perpetual } from '../../../support/markets.ts'
import { addressOf, DecidedExchange, userOf } from './support/decided-exchange.ts'

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
