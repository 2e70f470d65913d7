// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MarketMode, Parameters} from "./Market.sol";
import {RiskTerms} from "./Risk.sol";

/// @notice Last action and current batch of the market. One slot, written by every action.
struct Clock {
    uint48 actionId;
    uint48 batchId;
    /// Milliseconds, never decreasing.
    uint48 asOf;
    /// Settled parts of the batch, and its number of parts.
    uint8 part;
    uint8 parts;
    /// Clearing price of the batch in ticks, and its rates in millionths.
    uint40 price;
    uint24 makerFee;
    uint24 takerFee;
}

/// @notice The market's last oracle report, its funding index, and flags for slots that must be read. One slot.
struct Reference {
    uint96 oraclePrice;
    uint48 observedAt;
    /// Wei that one long step has paid since deployment; one short step has received the same.
    int96 fundingIndex;
    /// A funding rate may be running: actions must read its slot.
    bool funded;
    /// A change of parameters or mode is scheduled: actions must read its slots.
    bool changePending;
}

/// @notice The funding rate and its validity in milliseconds. It accrues from the `asOf` of one action to that of the next, so
/// it needs no accrual time of its own. One slot.
struct FundingRate {
    /// Wei per step and hour, oracle price included.
    int96 rate;
    uint48 validFrom;
    uint48 validUntil;
}

/// @notice Floors of an account's salts and margin nonces. One slot per account, read only if its position has `FLOORS_BIT`.
struct Floors {
    /// Salts below it are cancelled for every batch.
    uint56 settled;
    /// Salts below it are cancelled for batches with `asOf` > `requestedAt` + CANCEL_GRACE.
    uint56 requested;
    /// Milliseconds.
    uint48 requestedAt;
    /// Margin nonces below it are invalid.
    uint96 marginNonce;
}

/// @notice Scheduled changes. Each applies with the first action whose `asOf` (milliseconds) >= its time; time 0: none is
/// scheduled. Two slots.
struct PendingChange {
    /// Their mode is ignored: parameters do not change the mode.
    Parameters parameters;
    uint48 parametersFrom;
    MarketMode mode;
    uint48 modeFrom;
    /// The guardian's restriction, which can only make the mode stricter.
    MarketMode restriction;
    uint48 restrictionFrom;
}

/// @notice Wind-down of a market: heartbeats and freeze requests before its end, then the fixed price and one haircut. Times in
/// milliseconds. Three slots, of which only the first is written before the end.
struct WindDown {
    uint96 price;
    /// 0 before the end of the market.
    uint48 endedAt;
    uint48 requestedAt;
    uint48 heartbeatAt;
    /// Pool at the end, and sum of reported deficits. Together they are the total claims of solvent accounts.
    uint112 poolAtEnd;
    uint128 deficit;
    bool haircutFixed;
    /// Pool when the haircut was fixed, at most the total claims.
    uint112 haircutPool;
}

/// @notice A report for a freeze that any account can update (`poke`). One slot; no action reads it.
struct Poked {
    uint96 price;
    uint48 observedAt;
}

/// @notice Listed terms that no action reads before the close of a market. Written by the constructor only; as immutables they
/// would take code from settlement. Three slots.
struct ListedTerms {
    uint256 marketId;
    /// Feed and range of the final price: `feedId` of the market and 0, 0 for a perpetual.
    bytes32 feedId;
    uint96 low;
    uint96 high;
    /// As listed, in milliseconds.
    uint48 disputeWindow;
}

/// @notice Close and dispute window of a market, and its final report. Times in milliseconds. Two slots; a batch reads the first
/// from the listed expiry on only.
struct Ending {
    /// The expiry in force; 0 for a perpetual.
    uint48 expiresAt;
    /// Time of the scheduled mode settling; 0: none is scheduled.
    uint48 settlingAt;
    /// The dispute window in force.
    uint48 disputeWindow;
    /// Block time of the first final report, from which the dispute window counts; 0: there is none.
    uint48 reportedAt;
    /// The final report in force.
    uint48 observedAt;
    uint96 price;
}

/// @notice A packed word in a slot of its own. A struct, so that the slot is computed once for read and write.
struct Word {
    uint256 bits;
}

/// @notice The whole storage of a market, so that the extension and linked libraries can work on one struct.
struct TraderState {
    Clock clock;
    Reference reference_;
    Parameters parameters;
    FundingRate funding;
    PendingChange pending;
    RiskTerms riskTerms;
    WindDown windDown;
    Poked poked;
    ListedTerms listedTerms;
    Ending ending;
    /// account => packed position (PositionLib).
    mapping(address account => Word) positions;
    /// maker << 96 | salt >> 6 => 64 states of 3 bits and the time of a cancel request (SaltLib).
    mapping(uint256 key => Word) saltWords;
    /// maker << 96 | index => salt, filled steps, batch (SaltLib).
    mapping(uint256 key => uint256) partialSlots;
    /// maker << 96 | salt => time of a cancel request that found the time of its word taken.
    mapping(uint256 key => uint256) cancelRequests;
    mapping(address account => Floors) floors;
    /// account << 96 | nonce >> 8 => used bits of margin nonces.
    mapping(uint256 key => Word) marginNonces;
    /// Unpaid rest of paid claims.
    mapping(address account => uint256) unpaidClaims;
}
