/** Laws of numbers, nonces and hashes: several workers of one lane ask, sign and send in any order. */
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { toStoredPayload } from '../../../domain/actions/stored-action.ts'
import { apply, type Entry } from '../../../domain/exchange/apply.ts'
import {
  decideEnd,
  type EndAnswer,
  type RestartCommand,
  type VoidCommand,
} from '../../../domain/exchange/decide/chain/end-actions.ts'
import { decideLane, type LaneAnswer, type LaneCommand } from '../../../domain/exchange/decide/chain/lanes.ts'
import { decideOn } from '../../../domain/exchange/decide.ts'
import type { Inputs } from '../../../domain/exchange/inputs.ts'
import { createState, type ExchangeState } from '../../../domain/exchange/state.ts'
import { actionKey } from '../../../domain/exchange/tables/markets.ts'
import { toStoredSpec } from '../../../domain/market/stored-spec.ts'
import type { HourlyFunding, Millis, Price } from '../../../domain/units.ts'
import { perpetual } from '../../support/markets.ts'

const { marketId } = perpetual
const RELAYER = '0xrelayer'
const OTHER = '0xother'
const INPUTS: Inputs = {
  now: 9_000 as Millis,
  report: () => null,
  session: () => null,
  reportRules: () => null,
  headTime: null,
  chainSeenAt: null,
  limits: { oracleMaxAgeMs: 0, chainMaxAgeMs: 0 },
}

function append(state: ExchangeState, entries: readonly Entry[]): void {
  for (const entry of entries) apply(state, JSON.parse(JSON.stringify(entry)) as Entry)
}

function take(state: ExchangeState, command: LaneCommand): LaneAnswer {
  const { entries, answer } = decideOn<LaneCommand, LaneAnswer, never>(state, INPUTS, {
    decider: decideLane,
    command,
  })
  append(state, entries)
  return answer
}

function end(state: ExchangeState, command: VoidCommand | RestartCommand): EndAnswer {
  const { entries, answer } = decideOn<VoidCommand | RestartCommand, EndAnswer, never>(state, INPUTS, {
    decider: decideEnd,
    command,
  })
  append(state, entries)
  return answer
}

/** A market with so many funding updates in its queue, and a lane that has had two keys. */
function queued(actions: number): ExchangeState {
  const state = createState()
  const shard = `m${marketId}`
  append(state, [{ shard, seq: 1, row: { kind: 'market_listed', spec: toStoredSpec(perpetual) } }])
  for (let queueNo = 1; queueNo <= actions; queueNo++) {
    const asOf = (queueNo * 1_000) as Millis
    const payload = toStoredPayload({
      kind: 'update_funding',
      asOf,
      rate: 5n as HourlyFunding,
      validUntil: (asOf + 3_600_000) as Millis,
      report: { price: 7n as Price, observedAt: asOf, signatures: '0xaa' },
      session: null,
    })
    append(state, [
      {
        shard,
        seq: queueNo + 1,
        row: {
          kind: 'action_queued',
          queue_no: queueNo,
          action: 'update_funding',
          payload,
          touches: [],
          as_of: asOf,
        },
      },
    ])
  }
  take(state, { kind: 'register_lane', relayer: RELAYER, chainId: 1, lane: 'm1', firstNonce: 3 })
  take(state, { kind: 'register_lane', relayer: OTHER, chainId: 1, lane: 'm1', firstNonce: 3 })
  return state
}

const anyStep = fc.record({
  act: fc.constantFrom('next', 'next', 'sign', 'sign', 'submit', 'replace', 'reserve', 'restart', 'drop'),
  worker: fc.nat(2),
  key: fc.constantFrom(RELAYER, RELAYER, OTHER),
})

/** The keys that have signed pending actions. */
const signersOf = (state: ExchangeState): ReadonlySet<string | null> =>
  new Set(
    state.queues
      .pending(marketId)
      .map((queueNo) => state.actions.need(actionKey(marketId, queueNo)))
      .filter(({ status }) => status !== 'QUEUED')
      .map(({ relayer }) => relayer),
  )

describe('lanes of a state', () => {
  it('when workers with two keys ask, sign, send and restart in any order, every nonce has one action, every attempt one hash, and one key has actions in flight', () => {
    fc.assert(
      fc.property(fc.array(anyStep, { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), (steps, actions) => {
        const state = queued(actions)
        const hashes = new Map<string, string>()
        const nonces = new Map<string, string>()
        const asked = new Map<
          number,
          Extract<LaneAnswer, { kind: 'action' }> & { readonly relayer: string }
        >()
        const sign = (worker: number, attempt: number): void => {
          const action = asked.get(worker)
          if (action === undefined) return
          const { queueNo, relayer, nonce } = action
          const hash = `0x${worker}-${hashes.size}-${attempt}`
          const answer = take(state, {
            kind: 'signed',
            marketId,
            queueNo,
            relayer,
            nonce,
            attempt,
            hash,
            purpose: 'update_funding',
          })
          if (answer.kind !== 'hash') return
          const key = `${relayer}-${nonce}-${attempt}`
          expect(hashes.get(key) ?? answer.hash, 'the first signature wins').to.equal(answer.hash)
          hashes.set(key, answer.hash)
        }
        for (const { act, worker, key: relayer } of steps) {
          const first = state.queues.pending(marketId)[0]
          if (act === 'next') {
            const answer = take(state, {
              kind: 'next_action',
              marketId,
              relayer,
              latestAsOf: 9_000 as Millis,
            })
            if (answer.kind !== 'action') continue
            asked.set(worker, { ...answer, relayer })
            const use = `${answer.queueNo}`
            const number = `${relayer}-${answer.nonce}`
            expect(nonces.get(number) ?? use, 'a nonce is of one action').to.equal(use)
            nonces.set(number, use)
          } else if (act === 'sign') sign(worker, 1)
          else if (act === 'replace') sign(worker, 2)
          else if (act === 'reserve') {
            const answer = take(state, { kind: 'reserve_nonces', relayer, count: 1 })
            if (answer.kind !== 'nonces') throw new Error('the lane is registered')
            const number = `${relayer}-${answer.first}`
            expect(nonces.has(number)).to.equal(false)
            nonces.set(number, 'reserved')
          } else if (act === 'submit') {
            const action = asked.get(worker)
            if (action !== undefined)
              take(state, { kind: 'submitted', marketId, relayer: action.relayer, nonce: action.nonce })
          } else if (first !== undefined) {
            const isDropped = act === 'drop'
            const answer = end(state, {
              kind: 'restart_queue',
              spec: perpetual,
              queueNo: first,
              isDropped,
              error: 'refused',
            })
            expect(answer.kind).to.equal('done')
            expect(state.queues.pending(marketId).includes(first)).to.equal(!isDropped)
          }
          expect(signersOf(state).size, 'the chain orders transactions of one key only').to.be.at.most(1)
        }
        const ids = [...state.actions.rows()].flatMap(({ action_id, status }) =>
          action_id !== null && status !== 'REVERTED' && status !== 'VOIDED' ? [action_id] : [],
        )
        expect(new Set(ids).size, 'no two live actions have one id').to.equal(ids.length)
      }),
      { numRuns: 200 },
    )
  })

  it('when a key belongs to another lane, it is refused; a key that returns continues with its nonces', () => {
    const state = queued(0)
    const register = { kind: 'register_lane', relayer: RELAYER, chainId: 1, firstNonce: 0 } as const
    expect(take(state, { ...register, lane: 'm2' })).to.deep.equal({ kind: 'key_taken', lane: 'm1' })
    expect(take(state, { kind: 'reserve_nonces', relayer: RELAYER, count: 2 })).to.include({ first: 3 })
    expect(take(state, { ...register, lane: 'm1' })).to.deep.equal({ kind: 'done' })
    expect(take(state, { kind: 'reserve_nonces', relayer: RELAYER, count: 1 })).to.include({ first: 5 })
    expect(take(state, { kind: 'reserve_nonces', relayer: OTHER, count: 1 })).to.include({ first: 3 })
  })

  it('when both keys of a lane have signed with one nonce, a submission names the action by its key', () => {
    const state = queued(1)
    const next = { kind: 'next_action', marketId, relayer: OTHER, latestAsOf: 9_000 as Millis } as const
    const answer = take(state, next)
    if (answer.kind !== 'action') throw new Error('an action is queued')
    const { queueNo, nonce } = answer
    const signed = { queueNo, relayer: OTHER, nonce, attempt: 1, hash: '0x1', purpose: 'update_funding' }
    take(state, { kind: 'signed', marketId, ...signed })
    const submit = { kind: 'submitted', marketId, nonce } as const
    expect(take(state, { ...submit, relayer: RELAYER })).to.deep.equal({ kind: 'ended' })
    expect(take(state, { ...submit, relayer: OTHER })).to.deep.equal({ kind: 'done' })
  })

  it('when a worker is idle as of an older row, or an action is queued, it stays busy', () => {
    const state = queued(1)
    const version = state.heads.get(marketId)?.seq ?? 0
    expect(take(state, { kind: 'idle', marketId, version })).to.deep.equal({ kind: 'busy', version })
    const next: LaneCommand = {
      kind: 'next_action',
      marketId,
      relayer: RELAYER,
      latestAsOf: 9_000 as Millis,
    }
    const answer = take(state, next)
    if (answer.kind !== 'action') throw new Error('an action is queued')
    const signed = { queueNo: answer.queueNo, relayer: RELAYER, nonce: answer.nonce, attempt: 1 }
    take(state, { kind: 'signed', marketId, ...signed, hash: '0x1', purpose: 'update_funding' })
    expect(take(state, { kind: 'idle', marketId, version }).kind).to.equal('busy')
    const now = state.heads.get(marketId)?.seq ?? 0
    expect(take(state, { kind: 'idle', marketId, version: now }).kind).to.equal('done')
    expect(take(state, next)).to.deep.equal({ kind: 'none' })
  })

  it('when the action before has the same report, the proof is left out once that action is signed', () => {
    const state = queued(1)
    const next: LaneCommand = {
      kind: 'next_action',
      marketId,
      relayer: RELAYER,
      latestAsOf: 9_000 as Millis,
    }
    const first = take(state, next)
    expect(take(state, next), 'it keeps its numbers').to.deep.equal(first)
    if (first.kind !== 'action' || first.action.kind === 'settle_part') throw new Error('an update is queued')
    expect(first.action.report.signatures).to.equal('0xaa')
    expect(first.nonce).to.equal(3)
    expect(first.actionId).to.equal(1)
  })
})
