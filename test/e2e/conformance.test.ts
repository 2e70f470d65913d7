/** Runs the conformance suite of `test/api/conformance/` over HTTP against a complete exchange: the contract with traders, row by row. */
import { before, describe } from 'mocha'
import { testCoverage } from '../api/conformance/coverage.ts'
import { Exchange } from '../api/conformance/exchange.ts'
import { type Fixture, prepare } from '../api/conformance/fixture.ts'
import { testEndpoints, testFields } from '../api/conformance/reads.ts'
import { testCommands, testPlacements, testSignatures } from '../api/conformance/requests.ts'
import { testRules } from '../api/conformance/rules.ts'
import { useStack } from './support/stack.ts'

describe('the contract with traders', function () {
  this.timeout(60_000)
  const running = useStack()
  let exchange: Exchange
  let fixture: Fixture
  before(async () => {
    exchange = new Exchange(running.stack)
    fixture = await prepare(exchange)
  })
  const suite = () => ({ exchange, fixture })

  testEndpoints(suite)
  testFields(suite)
  testPlacements(suite)
  testSignatures(suite)
  testCommands(suite)
  testRules(suite)
  testCoverage()
})
