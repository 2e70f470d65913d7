/** Events of the forwarder: executed requests of owners. */

import type { ForwardRequestExecutedFact, IgnoredEvent } from '../../../domain/chain/facts.ts'
import type { ForwarderInterface } from '../../../typechain-types/Forwarder.ts'
import { Forwarder__factory } from '../../../typechain-types/factories/Forwarder__factory.ts'
import { addressOf, decodeEvent, type EventTable, IGNORED, type LogData } from './event-table.ts'

const FORWARDER = Forwarder__factory.createInterface()

const EVENTS: EventTable<ForwarderInterface, ForwardRequestExecutedFact, null> = {
  ExecutedForwardRequest: ({ signer, nonce, success }) => ({
    kind: 'forward_request_executed',
    signer: addressOf(signer),
    nonce: Number(nonce),
    success,
  }),
  EIP712DomainChanged: IGNORED,
}

export const decodeForwarderLog = (log: LogData): ForwardRequestExecutedFact | IgnoredEvent =>
  decodeEvent(FORWARDER, EVENTS, log, null)
