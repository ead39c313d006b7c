"""From a bundle to facts and measurements: inspection, gates, verify-cost, and the draft lengths that pay."""
