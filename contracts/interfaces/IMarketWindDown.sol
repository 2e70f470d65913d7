// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Report} from "../types/Report.sol";
import {Ending, Poked, WindDown} from "../types/TraderState.sol";

/**
 * @title Wind-down of a market
 * @notice A market closes at its expiry, or at the scheduled time of the mode settling if that is earlier: trading stops. Any
 * account then submits the report of the final price, which another report can replace within the dispute window, and finalizes
 * the market after it. If no report is submitted within a week of the close, any account can freeze the market instead. Before
 * the close, any account can freeze it if the operator has been silent for a day after a freeze request. Either way the market
 * has ended: price and funding index are fixed, and no other action is possible. Insolvent accounts can be reported for three
 * days. The first claim after that fixes one haircut. Any account can then submit claims for any account, in any order. Times
 * are milliseconds.
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
    /// @notice The final report in force, unless another one replaces it until `replaceableUntil`.
    event FinalPriceReported(address indexed by, uint96 price, uint48 observedAt, uint48 replaceableUntil);
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
    /// @notice The market is not closed. 0: no close is scheduled.
    error MarketNotClosed(uint256 closesAt);
    /// @notice The market is closed: it needs a final report. Prices of its own feed from the close on are not stored.
    error MarketClosed(uint256 closesAt);
    /// @notice A final report must be observed at or after the close.
    error FinalReportEarly(uint256 closesAt, uint256 observedAt);
    /// @notice The time for a first final report, or the dispute window, is over.
    error FinalReportLate(uint256 latest);
    /// @notice The report in force counts: the newest of a final feed, of a perpetual the one nearest to the close.
    error FinalReportSuperseded(uint256 inForce, uint256 given);
    error FinalReportMissing();
    /// @notice A market with a final report cannot be frozen.
    error FinalReportPresent(uint256 reportedAt);
    error FinalizeEarly(uint256 availableAfter);
    error FinalPriceInvalid(uint256 lowest, uint256 highest, uint256 price);
    error InsolvencyWindowOver(uint256 windowEnd);
    error ClaimEarly(uint256 availableAfter);
    error NothingToClaim(address account);
    error AmountZero();

    // ------------------------------------------------------------------ liveness of the operator

    /// @notice Records that the operator is alive while nothing trades. Requires neither a report nor an order. Operator only.
    function heartbeat() external;

    /// @notice Requests a freeze of a market that is not closed. Any later action or heartbeat voids the request. Reverts before
    /// the first batch. Any caller.
    function requestFreeze() external;

    /// @notice Stores a newer report for a freeze; no action reads it. Checked like the report of an action with `asOf` = block
    /// time, against the newest known report; observed before the close. Any caller.
    function poke(Report calldata report) external;

    // ------------------------------------------------------------------ the end

    /// @notice Ends the market at the newest known price of any age, if a freeze request is in force for more than a day; after
    /// the close, if no final report has been submitted for more than a week. Users exposed to a stale price can submit a newer
    /// report with `poke` first. Uses the next action number. Any caller.
    function freeze() external;

    /// @notice Stores the final price of a closed market, or replaces it within the dispute window, which starts
    /// with the first report. A future: the newest report of its final feed within its bounds, binary exactly one of them. A
    /// perpetual: the report of its own feed nearest to the close, within the move that its parameters allow; of that moment also
    /// another price that the oracle verifies. Any caller.
    function submitFinalReport(Report calldata report) external;

    /// @notice Ends the market at its final report, after the dispute window. Funding has accrued up to the close. Any caller.
    /// @param actionId The next action number.
    function finalizeMarket(uint256 actionId, uint256 asOf) external;

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

    /// @notice Heartbeat and freeze request; after the end of the market its final price and the haircut of claims.
    function windDown() external view returns (WindDown memory);
    /// @notice The newest report that `poke` stored; all zero if there is none.
    function poked() external view returns (Poked memory);
    /// @notice Expiry, settling time and dispute window in force, and the final report.
    function ending() external view returns (Ending memory);
    /// @notice Wei that the account's claim is still owed, because the pool was empty.
    function unpaidClaim(address account) external view returns (uint256);
}
