/** Decoding logs to facts: every event of every contract has a fact, and no log can stop the follower. */
import { expect } from 'chai'
import { type Interface, id, ZeroHash } from 'ethers'
import { describe, it } from 'mocha'
import type { Address } from '../../../domain/units.ts'
import type { Contracts } from '../../../indexer/ingest/contracts.ts'
import { decodeLog } from '../../../indexer/ingest/decode/decode-log.ts'
import type { ChainLog } from '../../../indexer/ports.ts'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { Forwarder__factory } from '../../../typechain-types/factories/Forwarder__factory.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { perpetual } from '../../support/markets.ts'

const BANK = `0x${'b1'.repeat(20)}` as Address
const MANAGER = `0x${'b2'.repeat(20)}` as Address
const FORWARDER = `0x${'b3'.repeat(20)}` as Address
const ALICE = `0x${'aa'.repeat(20)}` as Address
const CONTRACTS: Contracts = {
  bank: BANK,
  accountManager: MANAGER,
  forwarder: FORWARDER,
  markets: new Map([[perpetual.trader, perpetual]]),
}

const bank = MarginBank__factory.createInterface()
const trader = IsolatedTrader__factory.createInterface()

const logOf = (address: Address, topics: readonly string[], data: string): ChainLog => ({
  ...{ block: 1, blockHash: ZeroHash, logIndex: 0, txHash: ZeroHash, address, topics, data },
})

function emitted(contract: Interface, address: Address, name: string, args: readonly unknown[]): ChainLog {
  const { topics, data } = contract.encodeEventLog(name, args)
  return logOf(address, topics, data)
}

const moved = (name: string, args: readonly unknown[]): unknown => {
  const fact = decodeLog(emitted(bank as Interface, BANK, name, args), CONTRACTS)
  return fact.kind === 'ledger_moved' ? [fact.cause, fact.account, fact.freeDelta, fact.pendingDelta] : fact
}

describe('decodeLog', () => {
  it('when the bank moves a balance, it returns the changes of free and pending', () => {
    expect(moved('Deposited', [ALICE, BANK, 5n])).to.deep.equal(['deposit', ALICE, 5n, 0n])
    expect(moved('WithdrawalRequested', [ALICE, 5n, 9n, 1n])).to.deep.equal([
      'withdrawal_request',
      ALICE,
      -5n,
      5n,
    ])
    expect(moved('Withdrawn', [ALICE, 5n])).to.deep.equal(['withdrawal', ALICE, 0n, -5n])
    expect(moved('FeesCollected', [perpetual.trader, ALICE, 5n])).to.deep.equal([
      'fees_collected',
      ALICE,
      5n,
      0n,
    ])
  })

  it('when salts are cancelled, it returns the maker and the salts', () => {
    const some = decodeLog(
      emitted(trader as Interface, perpetual.trader, 'SaltsCancelled', [ALICE, [3n, 4n], 1n]),
      CONTRACTS,
    )
    expect(some).to.deep.equal({ kind: 'salts_cancelled', spec: perpetual, maker: ALICE, salts: [3n, 4n] })
    const below = decodeLog(
      emitted(trader as Interface, perpetual.trader, 'SaltsCancelledBelow', [ALICE, 8n, 1n]),
      CONTRACTS,
    )
    expect(below).to.deep.include({ salts: { below: 8n } })
  })

  it('when a contract declares an event, it is decodable', () => {
    for (const [contract, address] of [
      [bank, BANK],
      [trader, perpetual.trader],
      [AccountManager__factory.createInterface(), MANAGER],
      [Forwarder__factory.createInterface(), FORWARDER],
    ] as const) {
      ;(contract as Interface).forEachEvent((event) => {
        if (event.name === 'BatchSettled') return
        const log = emitted(contract as Interface, address, event.name, event.inputs.map(anyValue))
        expect(decodeLog(log, CONTRACTS).kind, event.name).not.to.equal('undecodable')
      })
    }
  })

  for (const [what, log] of [
    ['an unknown event', logOf(BANK, [id('Unknown()')], '0x')],
    ['a log of another contract', logOf(ALICE, [id('Deposited(address,address,uint256)')], '0x')],
    ['a log without topics', logOf(BANK, [], '0x')],
    ['truncated data', logOf(BANK, bank.encodeEventLog('Deposited', [ALICE, ALICE, 1n]).topics, '0x00')],
    [
      'a BatchSettled event with an invalid part',
      emitted(trader as Interface, perpetual.trader, 'BatchSettled', [1n, 1n, '0x1234']),
    ],
  ] as const) {
    it(`when it receives ${what}, it returns an undecodable fact`, () => {
      const fact = decodeLog(log, CONTRACTS)
      expect(fact.kind).to.equal('undecodable')
      expect(fact).to.have.property('spec', log.address === perpetual.trader ? perpetual : null)
    })
  }
})

/** Some value of the input's type. */
function anyValue(input: {
  readonly baseType: string
  readonly components: readonly unknown[] | null
}): unknown {
  if (input.baseType === 'address') return ALICE
  if (input.baseType === 'array') return []
  if (input.baseType === 'bool') return true
  if (input.baseType === 'bytes32') return ZeroHash
  if (input.baseType === 'tuple') return (input.components ?? []).map((part) => anyValue(part as never))
  return 1n
}
