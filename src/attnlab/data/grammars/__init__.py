"""Small grammars that write sentence pairs with gold links, a file for each pair of languages."""
