// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IAdjustments} from "./IAdjustments.sol";
import {IFunding} from "./IFunding.sol";
import {IMarketChanges} from "./IMarketChanges.sol";
import {IMarketWindDown} from "./IMarketWindDown.sol";
import {IMarketRisk} from "./IMarketRisk.sol";
import {ISettlementErrors} from "./ISettlementErrors.sol";
import {MarketGrid, MarketMode, OperatorStatus, Parameters} from "../types/Market.sol";
import {Order, SaltState} from "../types/Order.sol";
import {Position} from "../types/Position.sol";
import {Clock, Floors, PendingChange, Reference} from "../types/TraderState.sol";

/**
 * @title One market: settles batches of signed orders into isolated positions
 * @notice The operator settles the batches that the auction matched. The operator supplies quantities, a clearing price within
 * the band around the oracle price, and two fee rates up to the schedule. Every amount follows from these and the signed orders.
 *
 * Every order record requires its maker's signature. The operator can omit an order, but cannot fill it beyond its limit,
 * quantity, expiration, leverage or reduce-only flag, nor fill it twice, nor at two prices in one batch.
 *
 * Every event of a market is declared once, here or in an interface that this one inherits. The events determine the whole state
 * of the market: test/contracts/scenarios/replay.test.ts rebuilds it from logs.
 *
 * `asOf` (milliseconds) is the clock of an action: expiration, session keys, report age and cancels are evaluated at it. It never
 * decreases. An action reverts if `asOf` > block time + 2 s or block time > `asOf` + ACTION_LIFETIME (10 s).
 */
interface IIsolatedTrader is ISettlementErrors, IMarketChanges, IFunding, IAdjustments, IMarketRisk, IMarketWindDown {
    /// @notice One settled part. contracts/README.md documents `data`; domain/settlement/settlement-codec.ts decodes it.
    event BatchSettled(uint256 indexed actionId, uint256 indexed batchId, bytes data);
    /// @notice The immutable terms of the market. `ParametersChanged` with action 0 has the first parameters.
    event MarketCreated(MarketGrid grid, address bank, address accountManager, address oracle);
    /// @notice The operator's new status; `None` revokes the role or the proposal.
    event OperatorChanged(address indexed operator, OperatorStatus status);
    /// @notice Cancel requests that apply to batches with `asOf` > `requestedAt` (milliseconds) + CANCEL_GRACE.
    event SaltsCancelled(address indexed maker, uint64[] salts, uint256 requestedAt);
    /// @notice As `SaltsCancelled`, for every salt below `floor`. The previous floor applies to every batch if it was requested
    /// more than CANCEL_GRACE + ACTION_LIFETIME earlier.
    event SaltsCancelledBelow(address indexed maker, uint256 floor, uint256 requestedAt);

    error NotOperator(address caller);
    error OperatorNotProposed(address caller);
    error GridInvalid();
    /// @notice The expiry must lie after block time and at most ten years ahead; a perpetual has none. Milliseconds.
    error ExpiryInvalid(uint256 earliest, uint256 latest, uint256 given);
    error DisputeWindowInvalid(uint256 shortest, uint256 longest, uint256 given);
    error AddressZero();
    /// @notice The extension runs only by `delegatecall` from a market.
    error ExtensionCalledDirectly();
    error SaltTooLarge(uint256 salt);
    error AmountOffGrid(uint256 amount, uint256 increment);
    error SignatureLengthWrong(uint256 expected, uint256 given);
    /// @notice The last byte of an order's signature must be 01, which marks a personal message.
    error SignatureSuffixWrong(uint8 suffix);

    // ------------------------------------------------------------------ settlement

    /**
     * @notice Settles one part of a batch. Operator only.
     * @dev Reverts unless: the action number is the next one; the parts of a batch come in sequence with one price, `asOf` and
     * report; both sides are equal; taker steps equal the matched volume. The records of one account should be adjacent,
     * reducing before opening: splitting an account's run is safe, but stricter.
     * @param part Packed part, see contracts/README.md.
     */
    function settleBatch(bytes calldata part) external;

    // ------------------------------------------------------------------ cancels

    /// @notice Cancels the caller's orders with these salts. Salts that are dead or requested are skipped.
    function cancelSalts(uint64[] calldata salts) external;

    /// @notice Cancels the caller's orders with a salt below `floor`. A second request within CANCEL_GRACE + ACTION_LIFETIME
    /// restarts the clock of the first. A floor below the current one changes nothing.
    function cancelSaltsBelow(uint256 floor) external;

    // ------------------------------------------------------------------ management

    /// @notice Proposes `operator`, who can then accept the role. No effect on an approved operator. Restricted.
    function proposeOperator(address operator) external;

    /// @notice Accepts the operator role, which proves that the proposed address can send transactions.
    function acceptOperator() external;

    /// @notice Revokes the role or the proposal immediately. Restricted.
    function revokeOperator(address operator) external;

    // ------------------------------------------------------------------ views

    /// @notice The EIP-712 digest of an order: the `order_hash` everywhere else. Its maker signs it as a personal message.
    function hashOrder(Order calldata order) external view returns (bytes32);

    /// @notice Reverts with settlement's error if the order could not settle as of `asOf`. Checks every rule that does not depend
    /// on a price, a position or a fill.
    /// @param signature r, s, v and the suffix 01: 66 bytes.
    /// @return hash The digest.
    /// @return signer The maker or a session key of the maker.
    function validateOrder(Order calldata order, bytes calldata signature, uint256 asOf)
        external
        view
        returns (bytes32 hash, address signer);

    /// @notice Position as of the market's last action: `margin` excludes funding accrued since.
    function position(address account) external view returns (Position memory);

    /// @notice Equity and notional of an account at `price` (x 1e18), in wei x 1e18; as of the market's last action.
    function health(address account, uint256 price) external view returns (int256 equityX, uint256 notionalX);

    /// @notice Whether the order with this salt can fill: unused, partly filled, dead, or a cancel was requested. Does not
    /// consider the maker's floors.
    function saltState(address maker, uint256 salt) external view returns (SaltState);

    /// @notice Content of a maker's partial slot: salt, filled steps and latest batch of a partly filled order.
    function partialSlot(address maker, uint256 index)
        external
        view
        returns (uint256 salt, uint256 filled, uint256 batchId);

    /// @notice The account's floors: salts and margin nonces below them are invalid.
    function floors(address account) external view returns (Floors memory);
    /// @notice Whether the address is proposed or approved as an operator.
    function operatorStatus(address operator) external view returns (OperatorStatus);

    /// @notice Whether the market can settle, for the bank that lists it.
    /// @return mode The strictest of the mode in force and the modes that are scheduled; at least settling after the expiry.
    /// @return operators Number of approved operators.
    function readiness() external view returns (MarketMode mode, uint256 operators);
    /// @notice The last action and the current batch.
    function clock() external view returns (Clock memory);
    /// @notice The last oracle report that an action used, and the funding index as of the last action.
    function lastReference() external view returns (Reference memory);
    /// @notice The parameters in force as of the last action. A scheduled change may be due for the next one (`pendingChange`).
    function parameters() external view returns (Parameters memory);

    /// @notice Scheduled changes that are not applied yet.
    function pendingChange() external view returns (PendingChange memory);

    /// @notice The terms of the market as listed.
    function grid() external view returns (MarketGrid memory);
    /// @notice The `MarginBank` whose pool backs the market.
    function bank() external view returns (address);
    /// @notice The contract whose code the market delegates to for infrequent functions and for views.
    function extension() external view returns (address);
    /// @notice The `AccountManager` whose session keys may sign for their owners.
    function accountManager() external view returns (address);
    /// @notice The oracle that verifies the market's reports.
    function oracle() external view returns (address);
    /// @notice The EIP-712 domain separator of orders and adjustments.
    function domainSeparator() external view returns (bytes32);
}
