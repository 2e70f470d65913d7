import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { verifyBatch } from '../../../client/proof/verify-batch.ts'
import { clear } from '../../../domain/auction/auction.ts'
import type { Cleared } from '../../../domain/auction/clearing.ts'
import { type BatchProof, type ProofFill, verifyProof } from '../../../domain/proof/verify.ts'
import { digestOf } from '../../../domain/proof/wire.ts'
import { toInput } from '../../domain/support/any-auction.ts'
import { bigBatch } from '../../domain/support/big-batch.ts'
import { keccak, provenBatch } from '../../domain/support/proven.ts'

describe('client/proof', () => {
  let proof: BatchProof
  let own: ProofFill

  before(() => {
    const clearing = clear(toInput(bigBatch({ seed: 5, orders: 60, accounts: 30, holders: 10 })))
    proof = provenBatch(clearing as Cleared).proof
    own = proof.parts[0]?.fills[0] as ProofFill
  })

  const problemsOf = async (changed: unknown): Promise<readonly string[]> =>
    (await verifyBatch({ proof: changed })).problems
  const withOrder = (change: Record<string, unknown>) => {
    const statement = proof.statement as { orders: Record<string, unknown>[] }
    const [first, ...rest] = statement.orders
    return { ...statement, orders: [{ ...first, ...change }, ...rest] }
  }

  it('when another contract is demanded than the proof names, the proof is refused', async () => {
    const named = (proof.statement as { market: { trader: string } }).market.trader
    const verified = await verifyBatch({ proof, trader: named.toUpperCase().replace('0X', '0x') })
    expect(verified.problems).to.deep.equal([])
    expect((await verifyBatch({ proof })).lines.join()).to.include(
      `the contract ${named} is named by the proof itself`,
    )
    const other = `0x${'12'.repeat(20)}`
    const { problems } = await verifyBatch({ proof, trader: other })
    expect(problems).to.deep.equal([`statement.market.trader is ${named}; the demanded contract is ${other}`])
  })

  it('when the names of the statement are in another order, the proof holds', async () => {
    const reversed = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(reversed)
      if (typeof value !== 'object' || value === null) return value
      return Object.fromEntries(
        Object.entries(value)
          .reverse()
          .map(([name, field]) => [name, reversed(field)]),
      )
    }
    expect(await problemsOf(reversed(proof))).to.deep.equal([])
  })

  it('when the statement has a field more, or one of another type, the proof is refused', async () => {
    const [problem] = await problemsOf({ ...proof, statement: withOrder({ note: 'x' }) })
    expect(problem).to.include('digest')
    const statement = withOrder({ leverage: '5' })
    const [malformed] = await problemsOf({ ...proof, statement, digest: digestOf(statement, keccak) })
    expect(malformed).to.match(/^not a proof: \/statement\/orders\/0\/leverage /)
  })

  it('when a statement breaks an invariant of the rules, the proof is refused', () => {
    const statement = withOrder({ remaining: 0 })
    const [problem] = verifyProof({ ...proof, statement, digest: digestOf(statement, keccak) }, keccak)
    expect(problem).to.include('statement cannot be recomputed')
  })

  it('when other rules cleared the batch, the command says which it can verify', () => {
    const statement = { ...(proof.statement as object), rule_version: 1 }
    const [problem] = verifyProof({ ...proof, statement, digest: digestOf(statement, keccak) }, keccak)
    expect(problem).to.include('statement.rule_version is 1')
  })

  it('when an own order is in the proof, its place and fill are printed, and fields of its file are compared', async () => {
    const { order_hash, salt } = own as { order_hash: string; salt: string }
    const found = await verifyBatch({ proof, own: { order: order_hash, salt } })
    expect(found.problems).to.deep.equal([])
    expect(found.lines.at(-1)).to.include(`the order is number ${own.order} of the statement`)
    const { side } = (proof.statement as { orders: { side: string }[] }).orders[own.order - 1] as {
      side: string
    }
    const wrongSide = { order_hash, side: side === 'LONG' ? 'SHORT' : 'LONG' }
    const { problems } = await verifyBatch({ proof, own: { order: wrongSide, salt } })
    expect(problems).to.deep.equal([
      `the statement has side ${side} for the order; it is ${side === 'LONG' ? 'SHORT' : 'LONG'}`,
    ])
    const other = { order_hash, price: '0.5', quantity: '0' }
    const worse = await verifyBatch({ proof, own: { order: other, salt } })
    expect(worse.problems).to.have.length(2)
    expect(worse.problems[0]).to.match(/^the statement has price [\d.]+ for the order; it is 0\.5$/)
    expect(worse.problems[1]).to.match(/^the statement has [\d.]+ of the order open; its quantity is 0$/)
  })

  it('when an own order is missing, the limits of orders that belong in the batch are printed', async () => {
    const salt = `0x${'77'.repeat(32)}`
    const { problems } = await verifyBatch({ proof, own: { order: own.order_hash as string, salt } })
    expect(problems[0]).to.match(/^the order is not in the statement\. Live buys at [\d.]+ or above/)
    const malformed = await verifyBatch({ proof, own: { order: own.order_hash as string, salt: '0x12' } })
    expect(malformed.problems[0]).to.include('its salt, 0x and 64 hexadecimal digits')
  })
})
