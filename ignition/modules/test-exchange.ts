/** The exchange with a collateral token of its own that any account can mint: test chains only. */
import { buildModule } from '@nomicfoundation/hardhat-ignition/modules'
import { deployExchange } from '../exchange.ts'

export default buildModule('Exchange', (m) => {
  const usdm = m.contract('TestUSDM')
  return { usdm, ...deployExchange(m, usdm) }
})
