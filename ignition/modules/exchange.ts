/** The exchange with an existing collateral token: parameter `usdm`. */
import { buildModule } from '@nomicfoundation/hardhat-ignition/modules'
import { deployExchange } from '../exchange.ts'

export default buildModule('Exchange', (m) => deployExchange(m, m.getParameter<string>('usdm')))
