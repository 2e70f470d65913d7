/** Decodes a log of the followed contracts to a fact. Pure. A log that cannot be decoded becomes a fact too: it must not stop the follower. */

import type { ChainFact } from '../../../domain/chain/facts.ts'
import type { ChainLog } from '../../ports.ts'
import type { Contracts } from '../contracts.ts'
import { decodeAccountManagerLog } from './account-manager.ts'
import { decodeForwarderLog } from './forwarder.ts'
import { decodeTraderLog } from './isolated-trader.ts'
import { decodeBankLog } from './margin-bank.ts'

export function decodeLog(log: ChainLog, contracts: Contracts): ChainFact {
  const spec = contracts.markets.get(log.address) ?? null
  try {
    if (spec !== null) return decodeTraderLog(log, spec)
    if (log.address === contracts.bank) return decodeBankLog(log)
    if (log.address === contracts.accountManager) return decodeAccountManagerLog(log)
    if (log.address === contracts.forwarder) return decodeForwarderLog(log)
    throw new Error(`${log.address} is none of the followed contracts`)
  } catch (error) {
    return { kind: 'undecodable', spec, problem: (error as Error).message }
  }
}
