// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Report} from "../types/Report.sol";
import {Poked, WindDown} from "../types/TraderState.sol";

/**
 * @title Wind-down of a market
 * @notice A market ends in one of two ways: the operator finalizes it at a final price of the oracle; or any account freezes it
 * if the operator has been silent for a day after a freeze request. From then on price and funding index are fixed, and no other
 * action is possible. Insolvent accounts can be reported for three days. The first claim after that fixes one haircut. Any
 * account can then submit claims for any account, in any order. Times are milliseconds.
 *
 * A pause of the bank stops payments that cover a deficit. If one begins before the haircut is fixed, reports remain possible
 * and claims impossible until a day after its end: at most seven days after the end of the market.
 */
interface IMarketWindDown {
    /// @notice The operator is alive; voids earlier freeze requests.
    event Heartbeat(uint48 heartbeatAt);
    /// @notice A freeze becomes possible a day after `requestedAt`, unless an action or heartbeat voids the request.
    event FreezeRequested(address indexed by, uint48 requestedAt);
    /// @notice A freeze uses the price of this report, unless the market's last report is newer.
    event PricePoked(uint96 price, uint48 observedAt);
    /// @notice The market has ended at this price, as of `asOf`.
    /// @param pool The market's pool at the bank.
    event MarketFrozen(
        uint256 indexed actionId, uint48 asOf, uint96 price, uint48 observedAt, int96 fundingIndex, uint256 pool
    );
    /// @notice As `MarketFrozen`, at the final price.
    event MarketFinalized(
        uint256 indexed actionId, uint48 asOf, uint96 price, uint48 observedAt, int96 fundingIndex, uint256 pool
    );
    /// @notice The account's `deficit` was added to the sum of deficits, and its position was emptied.
    event InsolvencyReported(address indexed account, uint256 deficit);
    /// @notice `amount` went from the market's own free balance into the pool.
    event DeficitCovered(uint256 amount);
    /// @notice Every claim pays `pool / owed` of its value.
    event HaircutFixed(uint256 pool, uint256 owed);
    /// @notice A claim was paid into the account's free balance.
    /// @param value Of the position at the fixed price; 0 if only the unpaid rest of an earlier claim was paid.
    /// @param unpaid Amount that the pool could not pay and still owes.
    event Claimed(address indexed account, uint256 value, uint256 paid, uint256 unpaid);

    /// @notice The market has ended; its price is fixed.
    error MarketEnded(uint256 endedAt);
    error MarketNotEnded();
    /// @notice A freeze request is already in force.
    error FreezeAlreadyRequested(uint256 requestedAt);
    error FreezeNotRequested();
    /// @notice No batch has settled: there is no position that a freeze could free.
    error MarketNeverTraded();
    /// @notice An action or heartbeat after the request voids it.
    error FreezeRequestVoid(uint256 requestedAt, uint256 aliveAt);
    error FreezeEarly(uint256 availableAfter);
    /// @notice A perpetual has no final price.
    error MarketWithoutExpiry();
    error FinalPriceInvalid(uint256 lowest, uint256 highest, uint256 price);
    error InsolvencyWindowOver(uint256 windowEnd);
    error ClaimEarly(uint256 availableAfter);
    error NothingToClaim(address account);
    error AmountZero();

    // ------------------------------------------------------------------ liveness of the operator

    /// @notice Records that the operator is alive while nothing trades. Requires neither a report nor an order. Operator only.
    function heartbeat() external;

    /// @notice Requests a freeze. Any later action or heartbeat voids the request. Reverts before the first batch. Any caller.
    function requestFreeze() external;

    /// @notice Stores a newer report for a freeze; no action reads it. Checked like the report of an action with `asOf` = block
    /// time, against the newest known report. Any caller.
    function poke(Report calldata report) external;

    // ------------------------------------------------------------------ the end

    /// @notice Ends the market at the newest known price of any age, if a freeze request is in force for more than a day. Users
    /// exposed to a stale price can submit a newer report with `poke` first. Uses the next action number. Any caller.
    function freeze() external;

    /// @notice Ends a future or binary market in mode settling at its final price: a report of the market's final feed within
    /// its bounds, binary exactly one of them. Operator only.
    function finalizeMarket(uint256 actionId, uint256 asOf, Report calldata report) external;

    // ------------------------------------------------------------------ after the end

    /// @notice Adds the deficits of these accounts to the sum of deficits and empties their positions, within three days after
    /// the end, or until a day after a pause of the bank. Solvent and empty accounts are skipped. Any caller.
    function reportInsolvent(address[] calldata accounts) external;

    /// @notice Moves `amount` from the market's own free balance (`IMarginBank.depositFor` the market) into the pool. Before the
    /// haircut is fixed it raises every claim; afterwards it pays unpaid rests of claims. An excess remains in the pool. Any
    /// caller.
    /// @dev Never debits a trader: an immediate debit could break batches that were matched in another market.
    function coverDeficit(uint96 amount) external;

    /// @notice Pays the account's claim into its free balance: its value at the fixed price less the haircut, plus the unpaid
    /// rest of an earlier claim. Pays at most the pool; the rest remains due. Any caller, for any account.
    function claim(address account) external;

    // ------------------------------------------------------------------ views

    function windDown() external view returns (WindDown memory);
    function poked() external view returns (Poked memory);
    function unpaidClaim(address account) external view returns (uint256);
}
