/** How the facts of a block are divided into steps. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Address } from '../../../domain/units.ts'
import type { BlockFact } from '../../../indexer/ingest/fact-locks.ts'
import { MOST_STAGES, planSteps } from '../../../indexer/ingest/plan-steps.ts'
import { type Step as HistoryStep, historyOf } from '../support/part-histories.ts'

const part = (market: number, buyer = 0): HistoryStep => ({
  kind: 'part',
  market,
  steps: 1,
  buyer,
  isMatched: true,
})
const deposit: HistoryStep = { kind: 'deposit', account: 0, amount: 1 }
const request: HistoryStep = { kind: 'withdrawal', account: 2, amount: 1 }

const blockOf = (steps: readonly HistoryStep[]): BlockFact[] =>
  historyOf(steps).facts.map((fact, logIndex) => {
    const place = { block: 1, blockHash: '0x', logIndex, txHash: `0x${logIndex}` }
    return { fact, log: { ...place, address: '0x' as Address, topics: [], data: '0x' } }
  })

/** Of each step: its stage, its shards and its logs. */
const planOf = (facts: readonly BlockFact[], withPending: readonly Address[] = []) =>
  planSteps(facts, withPending).map(({ stage, shards, facts: own }) => [
    stage,
    shards.join(),
    own.map(({ log }) => log.logIndex).join(),
  ])

describe('planSteps', () => {
  it('when markets alternate in a block, it plans one step per market, in the order of the chain', () => {
    expect(planOf(blockOf([part(0), part(1), deposit, part(0)]))).to.deep.equal([
      [0, 'm2', '1'],
      [0, 'accounts', '2'],
      [0, 'm1', '0,3'],
    ])
  })

  it('when an account has a pending withdrawal, it joins the markets in which the account has facts', () => {
    const facts = blockOf([part(0), part(1, 1), part(2)])
    const [buyer] = facts.flatMap(({ fact }) =>
      fact.kind === 'part_mined' ? [fact.settled.fills[0]?.maker] : [],
    )
    expect(planOf(facts, [buyer as Address])).to.deep.equal([
      [0, 'm2', '1'],
      [0, 'm1,m3', '0,2'],
    ])
  })

  it('when a withdrawal is requested between parts, it plans a stage before, for and after the request', () => {
    expect(planOf(blockOf([part(0), request, part(1)]))).to.deep.equal([
      [0, 'm1', '0'],
      [1, 'accounts', '1'],
      [2, 'm2', '2'],
    ])
  })

  it('when a block would have more stages than the bound, it plans one step', () => {
    const turns = Array.from({ length: MOST_STAGES }, (_, at) => [part(at % 2), request]).flat()
    expect(planOf(blockOf(turns))).to.deep.equal([[0, 'accounts,m1,m2', turns.map((_, at) => at).join()]])
  })
})
